"""Batches of a dataset, read ahead in the background, with an exact position."""

import weakref
from collections.abc import Iterator
from typing import Any, final

from coredata.datasets.protocol import Batch, Dataset
from coredata.loading.position import Loader
from coredata.loading.prefetch import Prefetcher, Step, read, steps
from coredata.sampling import BatchSampler
from coredata.sampling.checks import whole_number


@final
class BatchLoader(Loader[Batch]):
    """An iterator of batches: `dataset.get_batch` of what this rank's sampler says.

    It has one position, which `for`, `next` and `state_dict` share: a loop that was left goes on
    where it stopped. A cyclic sampler goes on epoch after epoch; a sequential one ends, and
    `rewind` goes back to its start. See `Loader` for what a position means elsewhere.

    No thread starts and nothing compiles before the first `next`. Then up to `prefetch` batches
    are read ahead by `threads` threads (kernels and file reads release the GIL), in an order that
    does not depend on timing. The threads end with `close`, at the end of a `with` block, at the
    end of the samples, when an exception leaves `next`, and when the loader is dropped.

    Every batch has arrays of its own, which the caller may keep, change or give away.

    A loader can be pickled or forked at any point; the copy goes on from the same position with
    threads of its own.
    """

    def __init__(
        self,
        dataset: Dataset,
        sampler: BatchSampler,
        *,
        prefetch: int = 2,
        threads: int = 1,
        look_ahead: int = 16,
    ) -> None:
        """Make a loader that starts where `sampler` does (its `consumed_samples`).

        Args:
            dataset: what to read; `get_batch` is called from `threads` threads at once.
            sampler: which samples this rank takes, a micro batch at a time.
            prefetch: batches to keep ready; 0 reads each in `next`, without any thread.
            threads: batches read at the same time. One is enough for local files; storage with
                a long way to it wants more, and a `prefetch` at least as large.
            look_ahead: batches beyond those of which the dataset is told, so that storage behind
                URLs fetches their bytes meanwhile; it keeps to its own limits of memory. Needs
                `prefetch`.

        Raises:
            ValueError: `prefetch` or `look_ahead` below 0, or `threads` below 1.
            TypeError: one of them is no integer.
        """
        look_ahead = whole_number("look_ahead", look_ahead, 16)
        prefetch = whole_number("prefetch", prefetch, 2)
        threads = whole_number("threads", threads, 1)
        if look_ahead < 0:
            raise ValueError(
                f"look_ahead is {look_ahead}, expected 0 (no hints) or more, such as 16"
            )
        if prefetch < 0:
            raise ValueError(
                f"prefetch is {prefetch}, expected 0 (read in next) or more, such as 2"
            )
        if threads < 1:
            raise ValueError(f"threads is {threads}, expected 1 or more")
        super().__init__(dataset, sampler)
        self.prefetch = prefetch
        self.threads = threads
        self.look_ahead = look_ahead
        self._steps: Iterator[Step] | None = None
        self._prefetcher: Prefetcher | None = None
        self._dropped: weakref.finalize[..., Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the threads and what they have read."""
        return {**self.__dict__, "_steps": None, "_prefetcher": None, "_dropped": None}

    def _take(self) -> tuple[int, Batch]:
        if self.prefetch:
            step, batch = next(self._started())
        else:
            if self._steps is None:
                self._steps = steps(self.sampler.resume(self._consumed))
            step = next(self._steps)
            batch = read(self.dataset, step)
        return step.consumed_samples, batch

    def _started(self) -> Prefetcher:
        """The running prefetcher; a new one at the position if there is none in this process."""
        if self._prefetcher is None or not self._prefetcher.mine:
            plan = steps(self.sampler.resume(self._consumed))
            self._prefetcher = Prefetcher(
                self.dataset, plan, self.prefetch, self.threads, self.look_ahead
            )
            # For a loader that is dropped without close. It must not wait: the collector may run
            # in one of the threads it would wait for.
            self._dropped = weakref.finalize(self, self._prefetcher.stop, wait=False)
            self._dropped.atexit = False
        return self._prefetcher

    def _halt(self) -> None:
        running, self._prefetcher, self._steps = self._prefetcher, None, None
        if self._dropped is not None:
            self._dropped.detach()
            self._dropped = None
        if running is not None:
            running.stop()
