import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.sampling import (
    PADDING,
    HybridCPMegatronPretrainingSampler,
    MegatronFullValidationSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
)

TOTAL = st.integers(0, 60)
SMALL = st.integers(1, 5)


def blocks(total, consumed, size, drop_last):
    """The samples from `consumed` on, in plain blocks."""
    samples = list(range(consumed, total))
    cut = [samples[i : i + size] for i in range(0, len(samples), size)]
    return cut[:-1] if cut and len(cut[-1]) < size and drop_last else cut


@st.composite
def layouts(draw):
    total = draw(TOTAL)
    return total, draw(st.integers(0, total)), draw(SMALL), draw(SMALL)


def lists(sampler):
    batches = list(sampler)
    assert all(batch.dtype == np.int64 for batch in batches)
    assert len(batches) == len(sampler)
    return [batch.tolist() for batch in batches]


@given(layouts(), st.booleans())
@settings(deadline=None)
def test_sequential_cuts_each_block_by_rank(layout, drop_last):
    total, consumed, micro, ranks = layout
    cut = blocks(total, consumed, micro * ranks, drop_last)
    for rank in range(ranks):
        sampler = MegatronPretrainingSampler(total, consumed, micro, rank, ranks, drop_last)
        assert lists(sampler) == [block[rank * micro : (rank + 1) * micro] for block in cut]


@given(layouts())
@settings(deadline=None)
def test_padded_gives_every_rank_full_batches(layout):
    total, consumed, micro, ranks = layout
    cut = blocks(total, consumed, micro * ranks, drop_last=False)
    full = [block + [PADDING] * (micro * ranks - len(block)) for block in cut]
    for rank in range(ranks):
        sampler = PaddedPretrainingSampler(total, consumed, micro, rank, ranks)
        assert lists(sampler) == [block[rank * micro : (rank + 1) * micro] for block in full]


@given(layouts(), st.integers(1, 3), st.booleans())
@settings(deadline=None)
def test_hybrid_takes_all_micro_batches_of_a_block(layout, micro_batches, drop_last):
    total, consumed, micro, ranks = layout
    step = micro * ranks
    cut = blocks(total, consumed, step * micro_batches, drop_last)
    for rank in range(ranks):
        sampler = HybridCPMegatronPretrainingSampler(
            total, consumed, micro, step * micro_batches, rank, ranks, drop_last
        )
        starts = [k * step + rank * micro for k in range(micro_batches)]
        assert lists(sampler) == [
            [sample for start in starts for sample in block[start : start + micro]] for block in cut
        ]


@given(TOTAL, st.integers(1, 6), st.data())
@settings(deadline=None)
def test_full_validation_deals_out_single_samples(total, ranks, data):
    consumed = data.draw(st.integers(0, total))
    for rank in range(ranks):
        sampler = MegatronFullValidationSampler(total, rank, ranks, consumed)
        assert lists(sampler) == [[i] for i in range(consumed + rank, total, ranks)]


def test_full_validation_counts_steps_of_all_ranks():
    sampler = MegatronFullValidationSampler(7, 1, 2)
    assert len(sampler) == 3
    assert [sampler.consumed_after(k) for k in range(5)] == [0, 2, 4, 6, 7]
    assert len(sampler.resume(6)) == 0
    with pytest.raises(IndexError, match=r"batches: 5, but there are 4 batches from here"):
        sampler.consumed_after(5)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"micro_batch_size": 0}, r"micro_batch_size: 0 is below 1"),
        ({"data_parallel_size": 0}, r"data_parallel_size: 0 is below 1"),
        ({"data_parallel_rank": 3}, r"data_parallel_rank: 3 of data_parallel_size 3; .* 0 … 2"),
        ({"data_parallel_rank": -1}, r"data_parallel_rank: -1 of data_parallel_size 3"),
        ({"consumed_samples": 101}, r"consumed_samples: 101 of 100 samples. It must be 0 … 100"),
        ({"consumed_samples": -1}, r"consumed_samples: -1 of 100 samples"),
        ({"total_samples": -1}, r"total_samples: -1 is negative"),
    ],
)
def test_settings_out_of_range(change, problem):
    for sampler in (
        MegatronPretrainingSampler(100, 0, 2, 1, 3),
        PaddedPretrainingSampler(100, 0, 2, 1, 3),
        HybridCPMegatronPretrainingSampler(100, 0, 2, 12, 1, 3),
    ):
        with pytest.raises(ValueError, match=problem):
            dataclasses.replace(sampler, **change)
    if "micro_batch_size" not in change:
        with pytest.raises(ValueError, match=problem):
            dataclasses.replace(MegatronFullValidationSampler(100, 1, 3), **change)


@pytest.mark.parametrize(("size", "fits"), [(7, 6), (10, 12), (0, 6), (2, 6)])
def test_a_global_batch_that_does_not_divide(size, fits):
    with pytest.raises(
        ValueError,
        match=rf"global_batch_size: {size} is not a multiple .* = 2 x 3 = 6. {fits} would work",
    ):
        HybridCPMegatronPretrainingSampler(100, 0, 2, size, 0, 3)
