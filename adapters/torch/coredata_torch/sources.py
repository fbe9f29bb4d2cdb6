"""Where a loader's batches come from: threads of this process, or worker processes."""

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
import torch

from coredata.datasets.protocol import Dataset, LooksAhead
from coredata.loading import BatchLoader
from coredata.loading.prefetch import SamplesNamed, Step, read, steps
from coredata.sampling import BatchSampler
from coredata_torch.tensors import Tensors, as_tensors
from coredata_torch.view import TorchDataset
from coredata_torch.worker_failure import Caught, WorkerFailure


@runtime_checkable
class Source(Protocol):
    """Batches in the order of a plan."""

    def __next__(self) -> tuple[int, Tensors]:
        """The next batch, and the consumed samples after it.

        Raises:
            StopIteration: the plan is at its end.
            Exception: whatever reading raised.
        """
        ...

    def stop(self) -> None:
        """End what runs in the background."""
        ...


@final
class InThreads:
    """Batches read ahead by a thread; reading and compiled code leave the interpreter free."""

    def __init__(
        self,
        dataset: Dataset,
        sampler: BatchSampler,
        prefetch: int,
        pin_memory: bool,
        look_ahead: int,
    ) -> None:
        self._loader = BatchLoader(dataset, sampler, prefetch=prefetch, look_ahead=look_ahead)
        self._pin_memory = pin_memory

    def __next__(self) -> tuple[int, Tensors]:
        """See `Source`."""
        batch = next(self._loader)
        return self._loader.consumed_samples, as_tensors(batch, pin_memory=self._pin_memory)

    def stop(self) -> None:
        """See `Source`."""
        self._loader.close()


@final
class InWorkers:
    """Batches read by torch's worker processes.

    The plan is stepped here, so that a worker knows nothing of positions, and batches come back in
    its order, however many workers there are. torch gives batches to workers in turn, so that it
    is known which worker will read which: with a batch, a worker is told of later ones of its own,
    and storage begins to fetch their bytes there. Were it wrong, bytes would be fetched twice.
    """

    def __init__(
        self,
        dataset: Dataset,
        sampler: BatchSampler,
        prefetch: int,
        pin_memory: bool,
        look_ahead: int,
        num_workers: int,
        start_method: str | None,
    ) -> None:
        self._due: deque[Step] = deque()
        ahead = look_ahead if isinstance(dataset, LooksAhead) else 0
        told = -(-ahead // num_workers)
        loader = torch.utils.data.DataLoader(
            _ToldDataset(TorchDataset(dataset)),
            batch_sampler=_Numbers(steps(sampler), self._due, num_workers, told),
            collate_fn=_as_it_is,
            num_workers=num_workers,
            multiprocessing_context=start_method,
            prefetch_factor=prefetch,
            pin_memory=pin_memory,
        )
        self._batches: Any = iter(loader)

    def __next__(self) -> tuple[int, Tensors]:
        """See `Source`."""
        if self._batches is None or not self._due:
            raise StopIteration
        with SamplesNamed(self._due[0]):  # where a worker dies
            batch = next(self._batches)
        if isinstance(batch, WorkerFailure):
            batch.raise_again()
        return self._due.popleft().consumed_samples, batch

    def stop(self) -> None:
        """See `Source`.

        torch ends the workers of an iterator that is collected, but a traceback may hold it, and a
        worker that is forked meanwhile inherits it. So they are ended here.
        """
        batches, self._batches = self._batches, None
        if batches is not None:
            batches._shutdown_workers()


@final
@dataclass(frozen=True)
class _Asked:
    """A batch, and the samples of later ones that the same worker will be asked for."""

    step: Step
    ahead: Sequence[np.ndarray]


@final
class _ToldDataset(torch.utils.data.Dataset[Tensors]):
    """What workers read: told with each batch of later ones, it passes that on to the dataset.

    What fails there fails again, and is raised, when the batch itself is read.
    """

    def __init__(self, dataset: TorchDataset) -> None:
        self._dataset = dataset
        self._teller: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Tensors:
        return self._dataset[index]

    def __getitems__(self, asked: _Asked) -> Tensors | WorkerFailure | None:
        source = self._dataset.source
        if asked.ahead and isinstance(source, LooksAhead):
            if self._teller is None:  # in the worker, at its first batch
                self._teller = ThreadPoolExecutor(1, "coredata-worker-tell")
            for samples in asked.ahead:
                self._teller.submit(source.prefetch, samples)
        with Caught() as caught:
            return as_tensors(read(source, asked.step))
        return caught.failure


def _as_it_is(batch: Any) -> Any:
    """In place of a collate function: a batch is stacked already."""
    return batch


@final
class _Numbers(torch.utils.data.Sampler[Any]):
    """A batch sampler that keeps each batch that it gives out until that has come back.

    With each batch goes what a worker reads `told` batches of its own later; with its first one,
    all of its batches up to there.
    """

    def __init__(self, plan: Iterator[Step], due: deque[Step], workers: int, told: int) -> None:
        self._plan = plan
        self._due = due
        self._workers = workers
        self._told = told

    def __iter__(self) -> Iterator[_Asked]:
        distance = self._told * self._workers
        coming = deque(itertools.islice(self._plan, distance))
        for number in itertools.count():
            coming.extend(itertools.islice(self._plan, 1))
            if not coming:
                return
            nearest = self._workers if number < self._workers else distance
            later = itertools.islice(coming, nearest, None, self._workers) if self._told else ()
            ahead = [step.indices for step in later]
            self._due.append(coming.popleft())
            yield _Asked(self._due[-1], ahead)
