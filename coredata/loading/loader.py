"""Batches of a dataset, read ahead in the background, with an exact position."""

import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, final

from coredata.datasets.protocol import Batch, Dataset
from coredata.loading.prefetch import Prefetcher, Step, read, steps
from coredata.loading.state import make_state, read_state
from coredata.sampling import BatchSampler


@final
class BatchLoader(Iterator[Batch]):
    """An iterator of batches: `dataset.get_batch` of what this rank's sampler says.

    It has one position, which `for`, `next` and `state_dict` share: a loop that was left goes on
    where it stopped. A cyclic sampler goes on epoch after epoch; a sequential one ends, and
    `rewind` goes back to its start.

    The position counts what was handed out, not what was read ahead, in samples of all ranks. So
    a state continues exactly on another number of ranks, with another micro batch, or in another
    framework: make the loader there, over the same dataset, and `load_state_dict` it. (An order
    that itself depends on the ranks, as the cyclic sampler's with `data_sharding`, is refused.)

    No thread starts and nothing compiles before the first `next`. Then up to `prefetch` batches
    are read ahead by `threads` threads (kernels and file reads release the GIL), in an order that
    does not depend on timing. The threads end with `close`, at the end of a `with` block, at the
    end of the samples, when an exception leaves `next`, and when the loader is dropped.

    Every batch has arrays of its own, which the caller may keep, change or give away.

    A loader can be pickled or forked at any point; the copy goes on from the same position with
    threads of its own. One loader is for one consumer: `next` is not to be called by two threads.
    """

    def __init__(
        self, dataset: Dataset, sampler: BatchSampler, *, prefetch: int = 2, threads: int = 1
    ) -> None:
        """Make a loader that starts where `sampler` does (its `consumed_samples`).

        Args:
            dataset: what to read; `get_batch` is called from `threads` threads at once.
            sampler: which samples this rank takes, a micro batch at a time.
            prefetch: batches to keep ready; 0 reads each in `next`, without any thread.
            threads: batches read at the same time. One is enough for local files; storage with
                a long way to it wants more, and a `prefetch` at least as large.

        Raises:
            ValueError: `prefetch` below 0 or `threads` below 1.
        """
        if prefetch < 0:
            raise ValueError(
                f"prefetch is {prefetch}, expected 0 (read in next) or more, such as 2"
            )
        if threads < 1:
            raise ValueError(f"threads is {threads}, expected 1 or more")
        self.dataset = dataset
        self.sampler = sampler
        self.prefetch = prefetch
        self.threads = threads
        self._consumed = int(sampler.consumed_samples)
        self._closed = False
        self._steps: Iterator[Step] | None = None
        self._prefetcher: Prefetcher | None = None
        self._dropped: weakref.finalize[..., Any] | None = None

    @property
    def consumed_samples(self) -> int:
        """Samples handed out so far, by all ranks together."""
        return self._consumed

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def __len__(self) -> int:
        """Batches to come from here on: to the end, or to the end of the epoch if cyclic."""
        return len(self.sampler.resume(self._consumed))

    def __iter__(self) -> "BatchLoader":
        """Itself, at its position."""
        return self

    def __next__(self) -> Batch:
        """The next batch.

        Whatever the dataset raises comes out here, when its batch is due, with a note naming the
        samples. The position is then still before that batch: `next` tries it again.

        Raises:
            StopIteration: the samples are at an end.
            RuntimeError: the loader is closed.
        """
        if self._closed:
            raise RuntimeError(
                f"this BatchLoader is closed (at consumed_samples={self._consumed}). Make another "
                "one, and load this one's state_dict() into it to go on from here"
            )
        with ExitStack() as failure:
            failure.callback(self._halt)
            if self.prefetch:
                step, batch = next(self._started())
            else:
                if self._steps is None:
                    self._steps = steps(self.sampler.resume(self._consumed))
                step = next(self._steps)
                batch = read(self.dataset, step)
            failure.pop_all()
        self._consumed = step.consumed_samples
        return batch

    def seek(self, consumed_samples: int) -> None:
        """Go to where `consumed_samples` samples are consumed; what was read ahead is dropped.

        Raises:
            ValueError: the sampler cannot stand there; it says why.
            RuntimeError: the loader is closed.
        """
        if self._closed:
            raise RuntimeError(
                "this BatchLoader is closed, so its position cannot be changed. Make another one"
            )
        self.sampler.resume(consumed_samples)
        self._halt()
        self._consumed = int(consumed_samples)

    def rewind(self) -> None:
        """Go back to where the sampler it was made with starts."""
        self.seek(self.sampler.consumed_samples)

    def state_dict(self) -> dict[str, Any]:
        """The position, as a small dict of JSON values: version, consumed samples, fingerprint.

        It may be taken at any time, also after `close`.
        """
        return make_state(self._consumed, self._fingerprint())

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue where a state was taken, on whatever ranks and framework that was.

        Raises:
            TypeError: the state is not a mapping.
            ValueError: the state is malformed, of an unknown version, or at a position that this
                sampler cannot take.
            StateMismatchError: it was saved over another dataset, or one that was gone through
                in another order; each difference is named.
            RuntimeError: the loader is closed.
        """
        self.seek(read_state(state_dict, self._fingerprint()))

    def get_state(self) -> dict[str, Any]:
        """`state_dict`, under the name Grain's iterators have for it."""
        return self.state_dict()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """`load_state_dict`, under the name Grain's iterators have for it."""
        self.load_state_dict(state)

    def close(self) -> None:
        """End the threads and wait until they have ended. Calling it again does nothing."""
        self._closed = True
        self._halt()

    def __enter__(self) -> "BatchLoader":
        """Itself; leaving the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the threads and what they have read."""
        return {**self.__dict__, "_steps": None, "_prefetcher": None, "_dropped": None}

    def _fingerprint(self) -> dict[str, Any]:
        """What the samples and their order depend on: ranks and batch sizes are not in it."""
        return {**self.dataset.fingerprint(), "order": dict(self.sampler.order())}

    def _started(self) -> Prefetcher:
        """The running prefetcher; a new one at the position if there is none in this process."""
        if self._prefetcher is None or not self._prefetcher.mine:
            plan = steps(self.sampler.resume(self._consumed))
            self._prefetcher = Prefetcher(self.dataset, plan, self.prefetch, self.threads)
            # For a loader that is dropped without close. It must not wait: the collector may run
            # in one of the threads it would wait for.
            self._dropped = weakref.finalize(self, self._prefetcher.stop, wait=False)
            self._dropped.atexit = False
        return self._prefetcher

    def _halt(self) -> None:
        """Forget what was read ahead and end the threads; the position stays."""
        running, self._prefetcher, self._steps = self._prefetcher, None, None
        if self._dropped is not None:
            self._dropped.detach()
            self._dropped = None
        if running is not None:
            running.stop()
