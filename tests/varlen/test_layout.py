"""Rows as arrays of fixed shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen import cu_seqlens, pack, places, position_ids, segment_ids

LENGTHS = st.lists(st.integers(1, 9), max_size=20).map(lambda x: np.array(x, np.int64))


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 3))
def test_rows_say_what_lies_where(lengths, rows):
    plan = pack(lengths, 9).padded_to(rows)
    most = int(plan.row_segments().max(initial=0))
    ids, positions, bounds = segment_ids(plan), position_ids(plan), cu_seqlens(plan, most + 2)
    assert ids.dtype == positions.dtype == bounds.dtype == np.int32
    assert ids.shape == positions.shape == (len(plan), 9)
    assert bounds.shape == (len(plan), most + 3)
    for row in range(len(plan)):
        segments = plan[row].lengths.tolist()
        rest = 9 - sum(segments)
        assert (
            ids[row].tolist()
            == [k for k, n in enumerate([*segments, rest], 1) for _ in range(n)][: 9 - rest]
            + [0] * rest
        )
        assert positions[row].tolist() == [k for n in segments for k in range(n)] + [0] * rest
        ends = np.cumsum([0, *segments]).tolist()
        assert bounds[row].tolist() == ends + ends[-1:] * (most + 3 - len(ends))


def test_places_are_where_to_read_tokens_to():
    plan = pack(np.array([3, 4, 5]), 9)
    assert [plan[row].samples.tolist() for row in range(2)] == [[0], [1, 2]]
    assert places(plan).tolist() == [0, 9, 13]


def test_more_segments_than_there_is_room_for_are_refused():
    plan = pack(np.array([1, 1, 1]), 9)
    with pytest.raises(ValueError, match=r"Row 0 has 3 segments, more than max_segments=2\. Give"):
        cu_seqlens(plan, 2)
