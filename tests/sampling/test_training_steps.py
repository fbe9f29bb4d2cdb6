"""Steps and the samples they took, held to what the samplers of all ranks really give."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coredata.sampling import (
    BatchSizeRampUp,
    GlobalBatchSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
    TrainingSteps,
)


def walked(make, block, sizes, steps, start):
    """The samples of each of the first steps: what all ranks take, micro batch by micro batch."""
    samplers = [make(rank, start) for rank in range(make.ranks)]
    consumed, streams, found = start, [iter(s) for s in samplers], []
    for _ in range(steps):
        size = sizes.batch_size(consumed)
        taken = []
        for _ in range(size // block):
            try:
                batches = [next(stream) for stream in streams]
            except StopIteration:
                if not samplers[0].cyclic:
                    return found
                samplers = [make(rank, consumed) for rank in range(make.ranks)]
                streams = [iter(s) for s in samplers]
                batches = [next(stream) for stream in streams]
            taken += [int(i) for batch in batches for i in batch]
            consumed += block
        found.append(sorted(taken))
    return found


def maker(kind, total, micro, ranks, sharded):
    def make(rank, consumed):
        if kind == "cyclic":
            return MegatronPretrainingRandomSampler(total, consumed, micro, rank, ranks, sharded)
        return MegatronPretrainingSampler(total, consumed, micro, rank, ranks)

    make.ranks = ranks
    return make


@given(
    st.sampled_from(["single", "cyclic"]),
    st.integers(1, 60),
    st.integers(1, 3),
    st.integers(1, 3),
    st.booleans(),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(0, 40),
    st.integers(0, 3),
)
def test_both_ways_equal_a_walk(kind, total, micro, ranks, sharded, start, growth, ramp, begun):
    block = micro * ranks
    assume(total >= block)
    sizes = BatchSizeRampUp(start * block, block, ramp, (start + growth) * block)
    begun = begun * block if begun * block <= total else 0
    make = maker(kind, total, micro, ranks, sharded)
    steps = TrainingSteps(make(ranks - 1, 0), sizes, begun)
    expected = walked(make, block, sizes, 12, begun)
    if kind == "single":
        assert len(steps) >= len(expected)
        assert len(expected) == min(len(steps), 12)
    for step, samples in enumerate(expected):
        assert sorted(steps.samples(step).tolist()) == samples
        assert steps.step_at(steps.consumed_before(step)) == step
    wanted = np.array([0, total // 2, total - 1, total + 5])
    taking = steps.taking(wanted, 12)
    pairs = list(zip(taking.steps.tolist(), taking.samples.tolist(), strict=True))
    assert sorted(pairs) == sorted(
        (step, sample)
        for step, samples in enumerate(expected)
        for sample in samples
        if sample in wanted
    )
    assert taking.steps.tolist() == sorted(taking.steps.tolist())


def test_a_last_short_step():
    assert len(TrainingSteps(GlobalBatchSampler(10, 0, 4), 4)) == 2
    steps = TrainingSteps(PaddedPretrainingSampler(10, 0, 4, 0, 1), 4)
    assert len(steps) == 3
    assert steps.samples(2).tolist() == [8, 9]
    assert steps.taking(np.array([9])).steps.tolist() == [2]
    assert TrainingSteps(GlobalBatchSampler(10, 0, 4), 4).taking(np.array([9])).steps.size == 0


def test_steps_that_there_are_not():
    steps = TrainingSteps(GlobalBatchSampler(10, 0, 4), 4)
    for step in (-1, 2):
        text = rf"step {step} of a run of 2 steps over 10 samples; steps are numbered from 0 to 1$"
        with pytest.raises(IndexError, match=text):
            steps.samples(step)
    with pytest.raises(ValueError, match="consumed_samples: -1 is negative"):
        TrainingSteps(GlobalBatchSampler(10, 0, 4), 4, -1)
    with pytest.raises(ValueError, match="global_batch_size: 0 is below 1"):
        TrainingSteps(GlobalBatchSampler(10, 0, 4), 0)
    cyclic = MegatronPretrainingRandomSampler(10, 0, 2, 0, 2, False)
    with pytest.raises(ValueError, match=r"global_batch_size: 6 is not a multiple .* would work"):
        TrainingSteps(cyclic, 6)


def test_a_long_run_is_not_walked():
    sampler = GlobalBatchSampler(10**12, 0, 1024)
    steps = TrainingSteps(sampler, BatchSizeRampUp(32, 32, 10**9, 1024))
    step = steps.step_at(5 * 10**11)
    assert 5 * 10**11 in steps.samples(step)
    assert steps.taking(np.array([5 * 10**11])).steps.tolist() == [step]
