"""Sorting by counting against numpy's sorts."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen.counting import by_row, long_to_short


@settings(deadline=None)
@given(st.integers(0, 300), st.data())
def test_long_to_short_is_a_stable_sort(limit, data):
    lengths = np.array(data.draw(st.lists(st.integers(0, limit), max_size=60)), np.int64)
    lengths.flags.writeable = False
    order = np.empty(lengths.size, np.int32)
    long_to_short(lengths, np.int64(limit), order)
    np.testing.assert_array_equal(order, np.argsort(-lengths, kind="stable"))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@settings(deadline=None)
@given(st.lists(st.integers(-1, 8), max_size=60), st.integers(0, 3))
def test_rows_are_grouped_in_the_order_of_their_first_segments(dtype, numbers, empty):
    present = sorted(set(numbers) - {-1})
    row_of = np.array([present.index(n) if n >= 0 else -1 for n in numbers], dtype)
    before = row_of.tolist()
    splits = np.zeros(len(present) + empty + 1, np.int64)
    segments = np.full(len(numbers), -7)
    by_row(row_of, np.int64(len(present)), splits, segments)

    firsts = list(dict.fromkeys(row for row in before if row >= 0))
    groups = [[i for i, row in enumerate(before) if row == first] for first in firsts]
    groups += [[]] * empty
    assert row_of.tolist() == [firsts.index(row) if row >= 0 else -1 for row in before]
    assert [segments[a:b].tolist() for a, b in pairwise(splits)] == groups
    assert (segments[splits[-1] :] == -7).all()
