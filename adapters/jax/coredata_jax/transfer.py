"""Batches put on devices ahead of their turn, by a thread of its own."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from coredata.datasets.protocol import Batch
from coredata.loading import BatchLoader
from coredata_jax.placing import GlobalBatch

Place = Callable[[Batch], GlobalBatch]


def fetch(loader: BatchLoader, place: Place) -> tuple[int, GlobalBatch] | None:
    """The next batch of the loader on the devices, and what is consumed after it; None at the end.

    The position of the loader is then that of this batch.
    """
    batch = next(loader, None)
    return None if batch is None else (loader.consumed_samples, place(batch))


class Transfers:
    """Keeps `depth` batches on the devices, or on their way, beyond those handed out.

    It alone calls `next` on the loader, until it is stopped. An error is raised when its batch is
    due. It holds nothing of its owner; dropped, its thread ends.
    """

    def __init__(self, loader: BatchLoader, place: Place, depth: int) -> None:
        self._loader = loader
        self._place = place
        self._depth = depth
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="coredata-jax-transfer")
        self._queue: deque[Future[tuple[int, GlobalBatch] | None]] = deque()

    def next(self) -> tuple[int, GlobalBatch] | None:
        """The next batch, and what is consumed after it; None at the end.

        Raises:
            Exception: whatever the dataset raised for this batch.
        """
        while len(self._queue) <= self._depth:
            self._queue.append(self._thread.submit(fetch, self._loader, self._place))
        return self._queue.popleft().result()

    def stop(self) -> None:
        """Drop what was fetched ahead, and wait until the thread has ended."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._queue.clear()
