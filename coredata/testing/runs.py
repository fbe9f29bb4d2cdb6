"""Runs: resuming at every step, and the same global batches on any number of ranks."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import numpy as np

from coredata.datasets.protocol import Batch, Dataset
from coredata.loading import BatchLoader
from coredata.sampling import BatchSampler, MegatronPretrainingSampler
from coredata.testing.compare import assert_same_batch

MakeSampler = Callable[[int, int, int], BatchSampler]
"""(rank, data-parallel size, micro batch size) -> the sampler of that rank, from the start."""


def assert_resume_exact(
    make_loader: Callable[[], Any], steps: int, *, follow: int | None = None
) -> None:
    """A loader resumed at any step goes on exactly as one that was never interrupted.

    Runs `steps` batches and takes the state before and after each. Each state then goes through
    JSON into a fresh loader, whose batches are compared bit for bit.

    Args:
        make_loader: makes a loader at its start: an iterator with `state_dict`,
            `load_state_dict` and `close`. Its batches are dicts of arrays, or of tensors that
            numpy can look at.
        steps: how many batches to run; the run may end earlier.
        follow: how many batches to compare after each resume; by default all to the end of the
            run, which reads steps²/2 batches.

    Raises:
        AssertionError: a batch that differs, is missing or surplus; it names the step, field and
            place.
    """
    loader = make_loader()
    states, batches = [loader.state_dict()], []
    for batch in islice(loader, steps):
        batches.append(batch)
        states.append(loader.state_dict())
    loader.close()
    if not batches:
        raise AssertionError("resume: the loader gave no batch, so there is nothing to compare")
    for step, state in enumerate(states):
        resumed = make_loader()
        resumed.load_state_dict(json.loads(json.dumps(state)))
        end = len(batches) if follow is None else min(step + follow, len(batches))
        for number in range(step, end):
            what = f"resumed at step {step}: batch {number}"
            assert_same_batch(_next(resumed, what), batches[number], what)
        if end == len(batches) < steps and next(resumed, None) is not None:
            raise AssertionError(f"resumed at step {step}: a batch after the end of the run")
        resumed.close()


def assert_same_global_batches(
    dataset: Dataset,
    data_parallel_sizes: Sequence[int] = (1, 2, 3, 8),
    *,
    global_batch_size: int = 24,
    steps: int | None = None,
    make_sampler: MakeSampler | None = None,
    ordered: bool = True,
) -> None:
    """Whatever the number of ranks, together they see the same global batches, also after a resume.

    Each size runs with the largest micro batch that fits, the first one also with micro batches of
    one sample. Then a run on the first size is stopped in the middle and continued on the others.

    Args:
        dataset: what to read.
        data_parallel_sizes: numbers of ranks; each must divide `global_batch_size`.
        global_batch_size: samples in a step of all ranks.
        steps: global batches to compare; by default as many as one pass has.
        make_sampler: makes a rank's sampler; by default the samples in order, once.
        ordered: whether the rows of a global batch must come in the same order, micro batch by
            micro batch and rank by rank. The cyclic sampler deals rows out in turn, so there only
            their set is the same: False.

    Raises:
        AssertionError: batches that differ; it names the sizes, the step, field and place.
        ValueError: a size that does not divide the global batch.
    """
    make = _sequential(dataset) if make_sampler is None else make_sampler
    count = len(dataset) // global_batch_size if steps is None else steps
    plans = []
    for size in data_parallel_sizes:
        if global_batch_size % size:
            raise ValueError(
                f"data_parallel_sizes: {size} ranks cannot share {global_batch_size} samples "
                f"evenly; a global_batch_size of {global_batch_size * size} would work"
            )
        plans.append((size, global_batch_size // size))
    plans.insert(1, (plans[0][0], 1))

    def run(plan: tuple[int, int], state: Mapping[str, Any] | None = None) -> "_Run":
        return _Run(dataset, make, *plan, global_batch_size, ordered, state)

    with run(plans[0]) as first:
        states, expected = [first.state()], []
        for batch in islice(first, count):
            expected.append(batch)
            states.append(first.state())
    if len(expected) < count:
        raise AssertionError(f"the run has {len(expected)} global batches, expected {count}")
    half = count // 2
    for plan in plans:
        name = f"{plan[0]} ranks with micro batches of {plan[1]}"
        for start in {0, half}:
            came = f", resumed from {plans[0][0]} ranks at step {start}" if start else ""
            with run(plan, states[start]) as other:
                for step in range(start, count):
                    what = f"{name}{came}: global batch {step}"
                    assert_same_batch(_next(other, what), expected[step], what)


class _Run:
    """All ranks of a data-parallel run, one after the other: an iterator of global batches."""

    def __init__(
        self,
        dataset: Dataset,
        make_sampler: MakeSampler,
        size: int,
        micro: int,
        global_batch_size: int,
        ordered: bool,
        state: Mapping[str, Any] | None,
    ) -> None:
        self._loaders = [
            BatchLoader(dataset, make_sampler(rank, size, micro), prefetch=0)
            for rank in range(size)
        ]
        self._rounds = global_batch_size // (size * micro)
        self._ordered = ordered
        if state is not None:
            for loader in self._loaders:
                loader.load_state_dict(state)

    def __enter__(self) -> "_Run":
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for loader in self._loaders:
                stack.callback(loader.close)

    def state(self) -> dict[str, Any]:
        """The state, which must be the same on every rank."""
        states = [loader.state_dict() for loader in self._loaders]
        for rank, state in enumerate(states):
            if state != states[0]:
                raise AssertionError(f"state of rank {rank} is {state}, of rank 0 {states[0]}")
        return states[0]

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """One global batch: micro batch by micro batch, rank by rank."""
        parts = [next(loader) for _ in range(self._rounds) for loader in self._loaders]
        batch = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return batch if self._ordered else _sorted(batch)


def _sequential(dataset: Dataset) -> MakeSampler:
    """The samples in order, once."""

    def make(rank: int, size: int, micro: int) -> BatchSampler:
        return MegatronPretrainingSampler(
            total_samples=len(dataset),
            consumed_samples=0,
            micro_batch_size=micro,
            data_parallel_rank=rank,
            data_parallel_size=size,
        )

    return make


def _sorted(batch: Batch) -> Batch:
    """The rows in an order of their own: by their bytes."""
    rows = zip(*(list(np.ascontiguousarray(array)) for array in batch.values()), strict=True)
    keys = [b"".join(np.asarray(field).tobytes() for field in row) for row in rows]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return {name: array[order] for name, array in batch.items()}


def _next(batches: Iterator[Mapping[str, Any]], what: str) -> Mapping[str, Any]:
    """The next batch, of arrays or of what numpy can take for one; it must be there."""
    batch = next(batches, None)
    if batch is None:
        raise AssertionError(f"{what}: there is none; the run ended too early")
    return batch
