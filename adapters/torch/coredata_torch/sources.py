"""Where a loader's batches come from: threads of this process, or worker processes."""

import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol, final, runtime_checkable

import torch

from coredata.datasets.protocol import Dataset
from coredata.loading.prefetch import Prefetcher, Step, read
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
        self, dataset: Dataset, plan: Iterator[Step], prefetch: int, pin_memory: bool
    ) -> None:
        self._dataset = dataset
        self._plan = plan
        self._pin_memory = pin_memory
        self._prefetcher = Prefetcher(dataset, plan, prefetch, 1) if prefetch else None
        if self._prefetcher is not None:
            # For a loader that is dropped without close; the collector must not wait for threads.
            weakref.finalize(self, self._prefetcher.stop, wait=False).atexit = False

    def __next__(self) -> tuple[int, Tensors]:
        """See `Source`."""
        if self._prefetcher is not None:
            step, batch = next(self._prefetcher)
        else:
            step = next(self._plan)
            batch = read(self._dataset, step)
        return step.consumed_samples, as_tensors(batch, pin_memory=self._pin_memory)

    def stop(self) -> None:
        """See `Source`."""
        if self._prefetcher is not None:
            self._prefetcher.stop()


@final
class InWorkers:
    """Batches read by torch's worker processes.

    The plan is stepped here, so that a worker knows nothing of positions, and batches come back in
    its order, however many workers there are.
    """

    def __init__(
        self,
        dataset: Dataset,
        plan: Iterator[Step],
        prefetch: int,
        pin_memory: bool,
        num_workers: int,
        start_method: str | None,
    ) -> None:
        self._due: deque[int] = deque()
        loader = torch.utils.data.DataLoader(
            TorchDataset(dataset),
            batch_sampler=_Numbers(plan, self._due),
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
