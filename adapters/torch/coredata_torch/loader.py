"""Batches of tensors with an exact position, from threads or from worker processes."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, final

import torch

from coredata.datasets.protocol import Dataset
from coredata.loading import make_state, read_state
from coredata.loading.prefetch import steps
from coredata.sampling import BatchSampler
from coredata_torch.samplers import full_fingerprint
from coredata_torch.sources import InThreads, InWorkers, Source
from coredata_torch.tensors import Tensors

START_METHODS = ("fork", "spawn", "forkserver")


@final
class PretrainingDataLoader(Iterator[Tensors]):
    """An iterator of batches, as dicts of tensors: what this rank's sampler says.

    As with `coredata.BatchLoader`, there is one position, which `for`, `next` and `state_dict`
    share, and which counts what was handed out. It is kept here and not in workers, and in samples
    of all ranks: a state goes on exactly with any number of workers or ranks, another micro batch,
    in `BatchLoader` or in JAX. A cyclic sampler goes on epoch after epoch; a sequential one ends,
    and `rewind` goes back to its start.

    Nothing starts before the first `next`. `close` (or the end of a `with` block) ends threads and
    workers. Every batch has memory of its own.
    """

    def __init__(
        self,
        dataset: Dataset,
        sampler: BatchSampler,
        *,
        num_workers: int = 0,
        start_method: str | None = None,
        prefetch: int = 2,
        pin_memory: bool = True,
        repeat: bool = False,
    ) -> None:
        """Make a loader that starts where `sampler` does.

        Args:
            dataset: one of coredata's; for samples of different lengths, `PaddedToLongest` of it.
            sampler: which samples this rank takes, a micro batch at a time.
            num_workers: processes that read; 0 reads in a thread of this process, which is enough
                for local files: reading releases the interpreter.
            start_method: how workers start: "fork", "spawn" or "forkserver"; None is Python's own.
            prefetch: batches read ahead (by each worker); 0 reads in `next`, without workers only.
            pin_memory: put batches in page-locked memory where there is a GPU.
            repeat: start again with sample 0 after the end, as evaluations do.

        Raises:
            ValueError: a number or start method that there is not.
        """
        if num_workers < 0 or prefetch < 0 or (num_workers and not prefetch):
            raise ValueError(
                f"num_workers is {num_workers} and prefetch {prefetch}; expected 0 or more of each,"
                " and with workers a prefetch of at least 1, such as 2"
            )
        if start_method is not None and start_method not in START_METHODS:
            raise ValueError(
                f"start_method is {start_method!r}, expected one of {', '.join(START_METHODS)}, or "
                "None for Python's own"
            )
        self.dataset = dataset
        self.sampler = sampler
        self.num_workers = num_workers
        self.start_method = start_method
        self.prefetch = prefetch
        self.pin_memory = pin_memory
        self.repeat = repeat
        self._consumed = int(sampler.consumed_samples)
        self._closed = False
        self._source: Source | None = None
        self._process = 0

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

    def __iter__(self) -> "PretrainingDataLoader":
        """Itself, at its position."""
        return self

    def __next__(self) -> Tensors:
        """The next batch.

        If reading fails, the position stays before that batch, and `next` tries it again.

        Raises:
            StopIteration: the samples are at an end.
            RuntimeError: the loader is closed.
        """
        if self._closed:
            raise RuntimeError(
                f"this PretrainingDataLoader is closed (at consumed_samples={self._consumed}). Make"
                " another one, and load this one's state_dict() into it to go on from here"
            )
        try:
            return self._take()
        except StopIteration:
            if not self.repeat or self._consumed == 0:
                raise
        self.seek(0)
        return self._take()

    def seek(self, consumed_samples: int) -> None:
        """Go to where `consumed_samples` samples are consumed; what was read ahead is dropped.

        Raises:
            ValueError: the sampler cannot stand there; it says why.
            RuntimeError: the loader is closed.
        """
        if self._closed:
            raise RuntimeError(
                "this PretrainingDataLoader is closed, so its position cannot be changed. Make "
                "another one"
            )
        self.sampler.resume(consumed_samples)
        self._halt()
        self._consumed = int(consumed_samples)

    def rewind(self) -> None:
        """Go back to where the sampler it was made with starts."""
        self.seek(self.sampler.consumed_samples)

    def state_dict(self) -> dict[str, Any]:
        """The position, as `coredata.BatchLoader` writes it; also after `close`."""
        return make_state(self._consumed, full_fingerprint(self.dataset, self.sampler))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a state was taken, on whatever ranks, workers and framework that was.

        Raises:
            TypeError: the state is not a mapping.
            ValueError: it is malformed, or at a position that this sampler cannot take.
            StateMismatchError: it was saved over another dataset or order; each difference is
                named.
            RuntimeError: the loader is closed.
        """
        self.seek(read_state(state_dict, full_fingerprint(self.dataset, self.sampler)))

    def close(self) -> None:
        """End threads and workers. Calling it again does nothing."""
        self._closed = True
        self._halt()

    def __enter__(self) -> "PretrainingDataLoader":
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
        """Everything but what reads: a copy starts at the same position with its own."""
        return {**self.__dict__, "_source": None}

    def _take(self) -> Tensors:
        if self._source is None:
            self._source = self._start()
            self._process = os.getpid()
        elif self._process != os.getpid():
            raise RuntimeError(
                "this PretrainingDataLoader was forked while it was reading, and its threads and "
                "workers stayed behind; make one in each process, or fork before the first next"
            )
        with ExitStack() as failure:
            failure.callback(self._halt)
            consumed, batch = next(self._source)
            failure.pop_all()
        self._consumed = consumed
        return batch

    def _start(self) -> Source:
        plan = steps(self.sampler.resume(self._consumed))
        pin_memory = self.pin_memory and torch.cuda.is_available()
        if not self.num_workers:
            return InThreads(self.dataset, plan, self.prefetch, pin_memory)
        return InWorkers(
            self.dataset, plan, self.prefetch, pin_memory, self.num_workers, self.start_method
        )

    def _halt(self) -> None:
        """Forget what was read ahead and end what reads it; the position stays."""
        source, self._source = self._source, None
        if source is not None:
            source.stop()
