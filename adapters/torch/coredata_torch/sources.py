"""Where a loader's batches come from: threads of this process, or worker processes."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol, final, runtime_checkable

import torch

from coredata.datasets.protocol import Dataset
from coredata.loading import BatchLoader
from coredata.loading.prefetch import Step, steps
from coredata.sampling import BatchSampler
from coredata_torch.tensors import Tensors, as_tensors
from coredata_torch.view import TorchDataset, collate


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
        self, dataset: Dataset, sampler: BatchSampler, prefetch: int, pin_memory: bool
    ) -> None:
        self._loader = BatchLoader(dataset, sampler, prefetch=prefetch)
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
    its order, however many workers there are.
    """

    def __init__(
        self,
        dataset: Dataset,
        sampler: BatchSampler,
        prefetch: int,
        pin_memory: bool,
        num_workers: int,
        start_method: str | None,
    ) -> None:
        self._due: deque[int] = deque()
        loader = torch.utils.data.DataLoader(
            TorchDataset(dataset),
            batch_sampler=_Numbers(steps(sampler), self._due),
            collate_fn=collate,
            num_workers=num_workers,
            multiprocessing_context=start_method,
            prefetch_factor=prefetch,
            pin_memory=pin_memory,
        )
        self._batches: Any = iter(loader)

    def __next__(self) -> tuple[int, Tensors]:
        """See `Source`."""
        if self._batches is None:
            raise StopIteration
        batch = next(self._batches)
        return self._due.popleft(), batch

    def stop(self) -> None:
        """See `Source`.

        torch ends the workers of an iterator that is collected, but a traceback may hold it, and a
        worker that is forked meanwhile inherits it. So they are ended here.
        """
        batches, self._batches = self._batches, None
        if batches is not None:
            batches._shutdown_workers()


@final
class _Numbers:
    """A batch sampler that keeps, for each batch it gives out, the position after it."""

    def __init__(self, plan: Iterator[Step], due: deque[int]) -> None:
        self._plan = plan
        self._due = due

    def __iter__(self) -> Iterator[list[int]]:
        for step in self._plan:
            self._due.append(step.consumed_samples)
            yield step.indices.tolist()
