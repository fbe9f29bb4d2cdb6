"""Batches of tensors with an exact position, from threads or from worker processes."""

import os
from typing import Any, final

import torch

from coredata.datasets.protocol import Dataset
from coredata.loading import Loader
from coredata.sampling import BatchSampler
from coredata.sampling.checks import whole_number
from coredata_torch.sources import InThreads, InWorkers, Source
from coredata_torch.tensors import Tensors

START_METHODS = ("fork", "spawn", "forkserver")


@final
class PretrainingDataLoader(Loader[Tensors]):
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
        look_ahead: int = 16,
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
            look_ahead: batches beyond those of which the dataset is told, so that storage behind
                URLs fetches their bytes meanwhile; it keeps to its own limits of memory. With
                workers, each is told of its own.
            pin_memory: put batches in page-locked memory where there is a GPU.
            repeat: start again with sample 0 after the end, as evaluations do.

        Raises:
            ValueError: a number or start method that there is not.
            TypeError: a number that is no integer.
        """
        num_workers = whole_number("num_workers", num_workers)
        prefetch = whole_number("prefetch", prefetch, 2)
        look_ahead = whole_number("look_ahead", look_ahead, 16)
        if num_workers < 0 or prefetch < 0 or (num_workers and not prefetch):
            raise ValueError(
                f"num_workers is {num_workers} and prefetch {prefetch}; expected 0 or more of each,"
                " and with workers a prefetch of at least 1, such as 2"
            )
        if look_ahead < 0:
            raise ValueError(
                f"look_ahead is {look_ahead}, expected 0 (no hints) or more, such as 16"
            )
        if start_method is not None and start_method not in START_METHODS:
            raise ValueError(
                f"start_method is {start_method!r}, expected one of {', '.join(START_METHODS)}, or "
                "None for Python's own"
            )
        super().__init__(dataset, sampler)
        self.num_workers = num_workers
        self.start_method = start_method
        self.prefetch = prefetch
        self.look_ahead = look_ahead
        self.pin_memory = pin_memory
        self.repeat = repeat
        self._source: Source | None = None
        self._process = 0

    def __next__(self) -> Tensors:
        """The next batch; with `repeat`, after the last one the first.

        If reading fails, the position stays before that batch, and `next` tries it again.

        Raises:
            StopIteration: the samples are at an end.
            RuntimeError: the loader is closed, or was forked while it was reading.
        """
        if self._source is not None and self._process != os.getpid():
            raise RuntimeError(
                "this PretrainingDataLoader was forked while it was reading, and its threads and "
                "workers stayed behind; make one in each process, or fork before the first next"
            )
        try:
            return super().__next__()
        except StopIteration:
            if not self.repeat or self._consumed == 0:
                raise
        self.seek(0)
        return super().__next__()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what reads: a copy starts at the same position with its own."""
        return {**self.__dict__, "_source": None}

    def _take(self) -> tuple[int, Tensors]:
        if self._source is None:
            self._source = self._start()
            self._process = os.getpid()
        return next(self._source)

    def _start(self) -> Source:
        sampler = self.sampler.resume(self._consumed)
        pin_memory = self.pin_memory and torch.cuda.is_available()
        common = self.dataset, sampler, self.prefetch, pin_memory, self.look_ahead
        if not self.num_workers:
            return InThreads(*common)
        return InWorkers(*common, self.num_workers, self.start_method)

    def _halt(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.stop()
