"""What holds for every sampler, and for a run that goes on elsewhere."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.sampling import (
    PADDING,
    BatchSampler,
    BatchSizeRampUp,
    GlobalBatchSampler,
    HybridCPMegatronPretrainingSampler,
    MegatronFullValidationSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
    consumed_samples,
    resume_each,
)

RAMP = BatchSizeRampUp(4, 4, 40, 12)


def sequential(ranks, rank=0, consumed=0, total=96, micro=1):
    return MegatronPretrainingSampler(total, consumed, micro, rank, ranks)


def kept(ranks, rank=0, consumed=0, total=96, micro=1):
    return MegatronPretrainingSampler(total, consumed, micro, rank, ranks, drop_last=False)


def padded(ranks, rank=0, consumed=0, total=96, micro=1):
    return PaddedPretrainingSampler(total, consumed, micro, rank, ranks)


def hybrid(ranks, rank=0, consumed=0, total=96, micro=1):
    return HybridCPMegatronPretrainingSampler(total, consumed, micro, 24, rank, ranks)


def validation(ranks, rank=0, consumed=0, total=96, micro=1):
    return MegatronFullValidationSampler(total, rank, ranks, consumed)


def random(ranks, rank=0, consumed=0, total=96, micro=1):
    return MegatronPretrainingRandomSampler(total, consumed, micro, rank, ranks, False)


def sharded(ranks, rank=0, consumed=0, total=96, micro=1):
    return MegatronPretrainingRandomSampler(total, consumed, micro, rank, ranks, True)


def global_batches(ranks, rank=0, consumed=0, total=96, micro=1):
    return GlobalBatchSampler(total, consumed, 24)


def ramp(ranks, rank=0, consumed=0, total=96, micro=1):
    return GlobalBatchSampler(total, consumed, RAMP, drop_last=False)


ONE_RANK_IS_ALL = [global_batches, ramp]
BY_RANK = [sequential, kept, padded, hybrid, validation, random, sharded]
ONCE = [sequential, kept, padded, hybrid, validation, global_batches, ramp]
EVERY = [*BY_RANK, *ONE_RANK_IS_ALL]
ANY_RANKS = [sequential, padded, hybrid, validation, random, global_batches]


def union(make, ranks, consumed, steps):
    """Per step, what all ranks together see; padding left out."""
    alone = make in ONE_RANK_IS_ALL
    iterators = [iter(make(ranks, rank, consumed)) for rank in range(1 if alone else ranks)]
    empty = np.zeros(0, np.int64)
    steps_seen = []
    for _ in range(steps):
        samples = np.concatenate([next(iterator, empty) for iterator in iterators])
        steps_seen.append(sorted(samples[samples != PADDING].tolist()))
    return steps_seen


@pytest.mark.parametrize("make", EVERY)
def test_it_meets_the_protocol(make):
    sampler = make(2)
    assert isinstance(sampler, BatchSampler)
    assert sampler.total_samples == 96
    assert sampler.consumed_samples == 0
    assert sampler.cyclic == (make in (random, sharded))


@pytest.mark.parametrize("make", EVERY)
def test_iterating_changes_nothing(make):
    sampler = make(2)
    first = [batch.tolist() for batch in sampler]
    assert [batch.tolist() for batch in sampler] == first
    assert len(first) == len(sampler)
    assert sampler == make(2)


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("total", [96, 101])
def test_resume_at_every_step(make, total):
    sampler = make(2, 1, total=total)
    batches = [batch.tolist() for batch in sampler]
    for k in range(len(sampler) + 1):
        assert [batch.tolist() for batch in sampler.batches(k)] == batches[k:]
        resumed = sampler.resume(sampler.consumed_after(k))
        if not sampler.cyclic or k < len(sampler):
            assert [batch.tolist() for batch in resumed] == batches[k:]
            assert resumed.consumed_after(len(resumed)) == sampler.consumed_after(len(sampler))
    for k in range(len(sampler)):
        assert sampler.samples_in_batch(k) == (
            sampler.consumed_after(k + 1) - sampler.consumed_after(k)
        )


@pytest.mark.parametrize("make", EVERY)
def test_the_counter_counts_the_samples_of_all_ranks(make):
    sampler = make(3, total=101)
    steps = union(lambda *a: make(*a, total=101), 3, 0, len(sampler))
    if make in ONE_RANK_IS_ALL:
        steps = [sorted(batch[batch != PADDING].tolist()) for batch in sampler]
    for k, samples in enumerate(steps):
        assert len(samples) == sampler.samples_in_batch(k)


@pytest.mark.parametrize("make", ONCE)
@pytest.mark.parametrize("total", [0, 1, 96, 101])
def test_all_consumed_is_an_empty_iteration(make, total):
    sampler = make(4, 3, consumed=total, total=total)
    assert len(sampler) == 0
    assert list(sampler) == []
    assert sampler.consumed_after(0) == total


@pytest.mark.parametrize("make", [sequential, kept, padded, hybrid, validation, random, sharded])
@given(st.integers(30, 120), st.integers(1, 4), st.data())
@settings(deadline=None, max_examples=25)
def test_ranks_together_take_each_sample_once(make, total, ranks, data):
    micro = data.draw(st.integers(1, 2)) if make is not validation else 1
    if make is hybrid:
        ranks = data.draw(st.sampled_from([1, 2, 3, 4]))
    samplers = [make(ranks, rank, total=total, micro=micro) for rank in range(ranks)]
    seen = [sample for sampler in samplers for batch in sampler for sample in batch.tolist()]
    seen = [sample for sample in seen if sample != PADDING]
    assert len(seen) == len(set(seen))
    assert set(seen) <= set(range(total))
    whole = make in (kept, padded, validation)
    longest = max(samplers, key=len)
    assert len(seen) == (total if whole else longest.consumed_after(len(longest)))


@pytest.mark.parametrize("make", ANY_RANKS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("consumed", [0, 24, 48, 72])
def test_four_ranks_to_other_numbers_of_ranks(make, ranks, consumed):
    """Stop on 4 ranks at a global batch of 24; each later global batch is the same one."""
    before, after = make(4, consumed=consumed), make(ranks, consumed=consumed)
    assert before.order() == after.order()

    def batches_of_24(ranks, sampler):
        samples = list(itertools.chain(*union(make, ranks, consumed, len(sampler))))
        return [sorted(samples[i : i + 24]) for i in range(0, len(samples), 24)]

    assert batches_of_24(4, before) == batches_of_24(ranks, after)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_the_middle_of_the_second_epoch(ranks):
    """96 samples are whole steps on any of these ranks: epochs stay where they are."""
    before, after = random(4, consumed=96 + 48), random(ranks, consumed=96 + 48)
    assert before.epoch == after.epoch == 1
    assert before.order() == after.order()
    rest = [
        sorted(itertools.chain(*union(random, sampler.data_parallel_size, 96 + 48, len(sampler))))
        for sampler in (before, after)
    ]
    assert rest[0] == rest[1]
    assert len(set(rest[0])) == 48


def test_one_counter_for_each_kind_that_goes_in_order():
    orders = [make(3).order() for make in ONCE]
    assert all(order == {"order": "sequential", "total_samples": 96} for order in orders)


def test_orders_that_differ():
    assert random(4).order() != sharded(4).order()
    assert sharded(4).order() != sharded(2).order()
    assert random(4, total=97).order() != random(3, total=97, micro=2).order()
    # 98 samples: 96 an epoch on 4 ranks, 98 on 2.
    assert random(4, total=98).order() != random(2, total=98).order()
    assert random(4, total=98).order() == random(8, total=98).order()


@pytest.mark.parametrize("make", EVERY)
def test_batches_that_are_not_there(make):
    sampler = make(2)
    for start in (-1, len(sampler) + 1):
        with pytest.raises(IndexError, match=rf"start: {start}, but there are {len(sampler)}"):
            sampler.batches(start)
    if not sampler.cyclic:
        with pytest.raises(IndexError, match=r"batches: 500, but there are"):
            sampler.consumed_after(500)


@pytest.mark.parametrize("make", ONCE)
def test_seeking_does_not_walk(make):
    sampler = make(2, total=10**15)
    start = len(sampler) - 1
    (last,) = sampler.batches(start)
    assert last.max() > 10**15 - 100


def test_frozen():
    for make in EVERY:
        with pytest.raises(dataclasses.FrozenInstanceError):
            make(2).consumed_samples = 4


def test_several_validation_sets_have_a_counter_each():
    samplers = {"code": validation(2, total=10), "prose": padded(2, total=30)}
    moved = resume_each(samplers, {"code": 4, "prose": 20})
    assert consumed_samples(moved) == {"code": 4, "prose": 20}
    assert consumed_samples(samplers) == {"code": 0, "prose": 0}
    assert moved["code"] == validation(2, total=10, consumed=4)


def test_counters_of_other_sets():
    samplers = {"code": validation(2, total=10), "prose": padded(2, total=30)}
    with pytest.raises(
        ValueError, match=r"no counter for \['prose'\], and counters for \['books'\]"
    ):
        resume_each(samplers, {"code": 4, "books": 20})
    for other in ({"code": 4}, {"code": 4, "prose": 20, "books": 1}):
        with pytest.raises(ValueError, match=r"Name the datasets as when it was saved"):
            resume_each(samplers, other)
    with pytest.raises(ValueError, match=r"consumed_samples: 11 of 10 samples"):
        resume_each(samplers, {"code": 11, "prose": 0})
