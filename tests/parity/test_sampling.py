"""PyTorch's own permutations and megatron-core's own ramp-up beside ours."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coredata.sampling import BatchSizeRampUp, torch_randperm

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from megatron.core.num_microbatches_calculator import (
        RampupBatchsizeNumMicroBatchesCalculator,
    )


def pytorchs(n, seed):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return torch.randperm(n, generator=generator).numpy()


@given(st.integers(0, 5000), st.integers(0, 2**64 - 1))
@settings(deadline=None)
def test_permutations(n, seed):
    np.testing.assert_array_equal(torch_randperm(n, seed), pytorchs(n, seed), strict=True)


@pytest.mark.parametrize("n", [2**16, 2**16 + 1, 30_000, 3_000_000])
def test_long_permutations(n):
    np.testing.assert_array_equal(torch_randperm(n, 11), pytorchs(n, 11), strict=True)


@given(
    st.integers(1, 20),
    st.integers(1, 12),
    st.integers(1, 9),
    st.integers(1, 2000),
    st.lists(st.integers(0, 3000), min_size=1, max_size=50),
)
@example(5, 2, 7, 9, [9])
@example(5, 2, 14, 18, [9])
@settings(deadline=None)
def test_ramp_up(start, increment, increments, samples, places):
    full = start + increment * increments
    ours = BatchSizeRampUp(start, increment, samples, full)
    theirs = RampupBatchsizeNumMicroBatchesCalculator(
        full, 1, 1, False, 1, start, increment, samples
    )
    # Where a growth falls, floats may round either way: those places in any case.
    grows = [k * samples // increments + d for k in range(increments + 1) for d in (0, 1)]
    for consumed in places + grows:
        theirs.update(consumed, consistency_check=True)
        assert ours.batch_size(consumed) == theirs.get_current_global_batch_size()


def test_a_ramp_walked_to_its_end():
    ours = BatchSizeRampUp(6, 6, 1000, 48)
    theirs = RampupBatchsizeNumMicroBatchesCalculator(48, 2, 3, False, 1, 6, 6, 1000)
    ours.check_divisible(2, 3)
    consumed = 0
    for step in range(200):
        assert ours.consumed_after(step) == consumed
        assert ours.steps_until(consumed) == step
        theirs.update(consumed, consistency_check=True)
        assert ours.batch_size(consumed) == 6 * theirs.get()
        consumed += theirs.get_current_global_batch_size()
