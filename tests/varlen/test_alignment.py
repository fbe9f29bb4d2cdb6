import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen import align, alignment, context_parallel_partition


@pytest.mark.parametrize(
    ("sizes", "dynamic", "expected"),
    [
        ((1, 0, 1), False, 1),
        ((2, 0, 1), False, 4),
        ((4, 0, 8), False, 8),
        ((2, 4, 1), False, 16),
        ((1, 4, 1), False, 4),
        ((2, 0, 3), True, 12),
        ((2, 2, 3), True, 24),
        ((1, 0, 2), True, 4),
    ],
)
def test_alignment(sizes, dynamic, expected):
    assert alignment(*sizes, dynamic_context_parallel=dynamic) == expected


@settings(deadline=None)
@given(st.integers(0, 100), st.integers(1, 6), st.integers(0, 4))
def test_aligned_lengths_can_be_shared(length, cp, sp):
    multiple = alignment(cp, sp)
    padded = align(length, multiple)
    assert length <= padded < length + multiple
    share = context_parallel_partition(np.array([0, padded]), cp).shape[1]
    assert share % max(sp, 1) == 0


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"context_parallel_size": 0}, "context_parallel_size must be at least 1, found 0"),
        ({"sequence_parallel_size": -1}, "sequence_parallel_size must be at least 0, found -1"),
        ({"data_parallel_size": 0}, "data_parallel_size must be at least 1, found 0"),
    ],
)
def test_sizes_that_are_none_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        alignment(**sizes)
