import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.sampling import MegatronPretrainingRandomSampler, random, torch_randperm

SMALL = st.integers(1, 5)


def plain(total, consumed, micro, rank, ranks, data_sharding):
    """One epoch again, in plain Python, following the reference's definition."""
    step = micro * ranks
    active = total - total % step
    epoch, at = divmod(consumed, active)
    if data_sharding:
        bucket = total // step * micro
        shuffled = torch_randperm(bucket, epoch).tolist()
        ours = [rank * bucket + i for i in shuffled[at // ranks :]]
    else:
        shuffled = torch_randperm(total // micro * micro, epoch).tolist()
        ours = shuffled[at:][rank::ranks]
    batches = [ours[i : i + micro] for i in range(0, len(ours), micro)]
    # As many steps as every rank can take.
    return batches[: (active - at) // step]


@st.composite
def layouts(draw):
    micro, ranks = draw(SMALL), draw(SMALL)
    total = draw(st.integers(micro * ranks, micro * ranks + 60))
    step = micro * ranks
    steps_per_epoch = total // step
    consumed = draw(st.integers(0, 3 * steps_per_epoch)) * step
    return total, consumed, micro, ranks


@given(layouts(), st.booleans())
@settings(deadline=None)
def test_epochs_match_the_plain_definition(layout, data_sharding):
    total, consumed, micro, ranks = layout
    for rank in range(ranks):
        sampler = MegatronPretrainingRandomSampler(
            total, consumed, micro, rank, ranks, data_sharding
        )
        batches = [batch.tolist() for batch in sampler]
        assert batches == plain(total, consumed, micro, rank, ranks, data_sharding)
        assert len(batches) == len(sampler) > 0


@given(layouts(), st.booleans())
@settings(deadline=None)
def test_an_epoch_has_no_sample_twice(layout, data_sharding):
    total, consumed, micro, ranks = layout
    sampler = MegatronPretrainingRandomSampler(total, 0, micro, 0, ranks, data_sharding)
    sampler = sampler.resume(consumed - consumed % sampler.active_samples)
    seen = []
    for rank in range(ranks):
        for batch in dataclasses.replace(sampler, data_parallel_rank=rank):
            seen += batch.tolist()
    assert len(seen) == len(set(seen)) == sampler.active_samples
    assert set(seen) <= set(range(total))


def test_every_rank_runs_the_same_steps_where_the_reference_does_not():
    # 7 samples on 4 ranks: the reference gives ranks 0, 1 and 2 a second batch of this epoch.
    samplers = [MegatronPretrainingRandomSampler(7, 0, 1, rank, 4, False) for rank in range(4)]
    assert [len(list(sampler)) for sampler in samplers] == [1, 1, 1, 1]


def test_epochs_follow_each_other():
    sampler = MegatronPretrainingRandomSampler(41, 32, 2, 1, 2, False)
    assert (sampler.epoch, len(sampler)) == (0, 2)
    following = sampler.resume(sampler.consumed_after(len(sampler)))
    assert (following.epoch, len(following)) == (1, 10)
    # Counting goes on over the end of the epoch, as iterating epoch after epoch does.
    assert sampler.consumed_after(3) == following.consumed_after(1) == 44


def test_the_permutation_is_computed_once_in_an_iteration(monkeypatch):
    calls = []
    monkeypatch.setattr(
        random, "torch_randperm", lambda n, seed: calls.append((n, seed)) or torch_randperm(n, seed)
    )
    sampler = MegatronPretrainingRandomSampler(41, 48, 2, 1, 2, False)
    iterator = sampler.batches(2)
    assert calls == []
    assert len(list(iterator)) == len(sampler) - 2
    assert calls == [(40, 1)]
    assert list(sampler.batches(len(sampler))) == []
    assert len(calls) == 1


def test_a_place_where_no_step_begins():
    with pytest.raises(
        ValueError,
        match=r"consumed_samples: 45 is 5 samples into epoch 1, which is not a multiple of "
        r"micro_batch_size x data_parallel_size = 2 x 2 = 4. Resume from 44 or 48, or with a step "
        r"that divides 5",
    ):
        MegatronPretrainingRandomSampler(41, 45, 2, 0, 2, False)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"micro_batch_size": 0}, r"micro_batch_size: 0 is below 1"),
        ({"data_parallel_rank": 2}, r"data_parallel_rank: 2 of data_parallel_size 2"),
        ({"consumed_samples": -4}, r"consumed_samples: -4 is negative"),
        (
            {"total_samples": 3},
            r"total_samples: 3 samples are not enough for one step .* = 2 x 2 = 4",
        ),
        ({"total_samples": 0}, r"total_samples: 0 samples are not enough"),
    ],
)
def test_settings_out_of_range(change, problem):
    sampler = MegatronPretrainingRandomSampler(41, 0, 2, 0, 2, True)
    with pytest.raises(ValueError, match=problem):
        dataclasses.replace(sampler, **change)


def test_counting_backwards():
    with pytest.raises(IndexError, match=r"batches: -1 is negative"):
        MegatronPretrainingRandomSampler(41, 0, 2, 0, 2, True).consumed_after(-1)
