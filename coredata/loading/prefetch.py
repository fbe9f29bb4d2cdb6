"""Batches read ahead in background threads, handed out in order."""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from coredata.datasets.protocol import Batch, Dataset, LooksAhead, Sample
from coredata.sampling import BatchSampler

_SHOWN = 16


@dataclass(frozen=True)
class Step:
    """One batch to come: the samples of this rank, and where the run is when it is taken."""

    indices: np.ndarray
    """Sample numbers, int64."""

    consumed_samples: int
    """Consumed samples of all ranks after this batch."""


def steps(sampler: BatchSampler) -> Iterator[Step]:
    """The batches of a sampler; those of a cyclic one without end, epoch after epoch.

    Raises:
        ValueError: a cyclic sampler whose epoch holds no batch.
    """
    while True:
        batches = 0
        for indices in sampler:
            batches += 1
            yield Step(np.asarray(indices, np.int64), sampler.consumed_after(batches))
        if not sampler.cyclic:
            return
        if batches == 0:
            raise ValueError(
                f"the cyclic sampler {sampler!r} has no batch in an epoch, so it would turn "
                "for ever. Give it more samples than one batch of all ranks needs"
            )
        sampler = sampler.resume(sampler.consumed_after(batches))


def read(dataset: Dataset, step: Step) -> Batch:
    """The batch of a step. What goes wrong in the dataset gets a note naming the samples."""
    with SamplesNamed(step):
        return dataset.get_batch(step.indices)


def read_samples(dataset: Dataset, step: Step) -> list[Sample]:
    """The samples of a step one by one; see `read`."""
    with SamplesNamed(step):
        return dataset.__getitems__(step.indices.tolist())


class SamplesNamed:
    """Adds the batch's sample numbers to whatever is raised inside the `with`.

    A `StopIteration` would pass for the end of the loader; it becomes a `RuntimeError`.
    """

    def __init__(self, step: Step) -> None:
        self.step = step

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            return
        if isinstance(error, StopIteration):
            stopped = RuntimeError(f"the dataset raised {error!r} while reading a batch")
            stopped.add_note(self._note())
            raise stopped from error
        error.add_note(self._note())

    def _note(self) -> str:
        indices = self.step.indices
        more = f", … ({len(indices)} in all)" if len(indices) > _SHOWN else ""
        shown = ", ".join(map(str, indices[:_SHOWN].tolist()))
        return (
            f"while reading the batch of samples [{shown}{more}], "
            f"after which consumed_samples is {self.step.consumed_samples}"
        )


class Prefetcher:
    """Keeps `depth` batches read, or being read, beyond those handed out.

    A thread of its own steps the sampler, so that a new epoch's permutation does not keep the
    consumer waiting; `threads` others read. The order is that of the steps, whatever thread is
    first. It holds nothing of its owner, so an owner that is dropped can be collected.

    Steps are planned `ahead` of those that are read, and the dataset is told of their samples, if
    it can make use of that: it may begin to fetch their bytes. What fails there fails again, and
    is raised, when the step is read.
    """

    def __init__(
        self, dataset: Dataset, plan: Iterator[Step], depth: int, threads: int, ahead: int = 0
    ) -> None:
        self._dataset = dataset
        self._plan = plan
        self._depth = depth
        self._ahead = ahead if isinstance(dataset, LooksAhead) else 0
        self._planned: deque[Future[Step | None]] = deque()
        self._process = os.getpid()
        self._planner = ThreadPoolExecutor(1, thread_name_prefix="coredata-loader-plan")
        self._readers = ThreadPoolExecutor(threads, thread_name_prefix="coredata-loader-read")
        self._queue: deque[Future[tuple[Step, Batch] | None]] = deque()

    @property
    def mine(self) -> bool:
        """Whether this process started it: threads do not live on in a forked child."""
        return self._process == os.getpid()

    def __next__(self) -> tuple[Step, Batch]:
        """The next step and its batch.

        Raises:
            StopIteration: there is no further step.
            Exception: whatever the dataset or the sampler raised for this step.
        """
        while len(self._queue) <= self._depth:
            while len(self._planned) <= self._ahead:
                self._planned.append(self._planner.submit(next, self._plan, None))
                if self._ahead:
                    self._planner.submit(_hint, self._dataset, self._planned[-1])
            step = self._planned.popleft()
            self._queue.append(self._readers.submit(_read_planned, self._dataset, step))
        result = self._queue[0].result()
        if result is None:
            raise StopIteration
        self._queue.popleft()
        return result

    def stop(self, wait: bool = True) -> None:
        """Drop what was read ahead and end the threads; with `wait`, after they have ended."""
        if not self.mine:
            return
        self._planner.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)
        if wait:
            self._planner.shutdown(wait=True)
            self._readers.shutdown(wait=True)
        self._queue.clear()
        self._planned.clear()


def _hint(dataset: Dataset, planned: "Future[Step | None]") -> None:
    """Runs in the planner: tell the dataset of a step that will be read soon."""
    step = planned.result()
    if step is not None and isinstance(dataset, LooksAhead):
        dataset.prefetch(step.indices)


def _read_planned(dataset: Dataset, planned: "Future[Step | None]") -> tuple[Step, Batch] | None:
    """Runs in a reader: wait for the planner's step, read its batch; None at the end."""
    step = planned.result()
    return None if step is None else (step, read(dataset, step))
