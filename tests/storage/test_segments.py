"""The bookkeeping of fetched stretches, held to a plain twin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.storage.segments import SegmentTable

COST = 512


def ready(table, start, stop, ahead=False, of="x"):
    segment = table.add(of, start, stop, ahead)
    table.arrived(segment, bytes(stop - start))
    return segment


def bounds(segments):
    return [(segment.start, segment.stop) for segment in segments]


def test_overlaps_and_holes():
    table = SegmentTable(10_000)
    ready(table, 10, 20)
    ready(table, 20, 25)
    ready(table, 40, 50)
    assert bounds(table.over("x", 15, 22)) == [(10, 20), (20, 25)]
    assert bounds(table.over("x", 25, 40)) == []
    assert bounds(table.over("x", 0, 100)) == [(10, 20), (20, 25), (40, 50)]
    assert bounds(table.over("y", 0, 100)) == []
    assert list(table.holes("x", 0, 60)) == [(0, 10), (25, 40), (50, 60)]
    assert list(table.holes("x", 12, 24)) == []
    assert list(table.holes("y", 3, 4)) == [(3, 4)]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 10)), max_size=12),
    st.integers(0, 60),
    st.integers(1, 20),
)
def test_like_a_set_of_bytes(ranges, start, length):
    table = SegmentTable(1 << 20)
    covered = set()
    for a, n in ranges:
        for begin, end in list(table.holes("x", a, a + n)):
            ready(table, begin, end)
            covered.update(range(begin, end))
    asked = set(range(start, start + length))
    found = {b for a, z in table.holes("x", start, start + length) for b in range(a, z)}
    assert found == asked - covered
    held = {b for s in table.over("x", start, start + length) for b in range(s.start, s.stop)}
    assert held & asked == asked & covered


def test_the_least_recently_used_goes_first():
    table = SegmentTable(3 * (COST + 10))
    first, second, third = (ready(table, 100 * i, 100 * i + 10) for i in range(3))
    table.take(first)
    table.give_back(first)
    assert table.make_room(COST + 10, ahead=False)
    assert bounds(table.over("x", 0, 1000)) == [(0, 10), (200, 210)]
    assert table.held == 2 * (COST + 10)
    assert table.evicted == 1
    del second, third


def test_what_is_on_its_way_or_being_read_stays():
    table = SegmentTable(2 * (COST + 10))
    table.add("x", 0, 10, ahead=False)
    table.take(ready(table, 20, 30))
    assert not table.make_room(1, ahead=False)
    assert bounds(table.over("x", 0, 100)) == [(0, 10), (20, 30)]


def test_what_was_fetched_ahead_gives_way_to_reads_alone():
    table = SegmentTable(2 * (COST + 10))
    ready(table, 0, 10, ahead=True)
    ready(table, 20, 30, ahead=True)
    assert table.ahead == table.held == 2 * (COST + 10)
    assert not table.make_room(1, ahead=True)
    assert table.make_room(1, ahead=False)
    assert bounds(table.over("x", 0, 100)) == [(20, 30)]
    assert table.ahead == COST + 10


def test_what_was_read_goes_before_what_was_fetched_ahead():
    table = SegmentTable(2 * (COST + 10))
    ready(table, 0, 10, ahead=True)
    ready(table, 20, 30)
    assert table.make_room(1, ahead=True)
    assert bounds(table.over("x", 0, 100)) == [(0, 10)]


def test_reading_what_was_fetched_ahead_makes_it_read():
    table = SegmentTable(10_000)
    segment = ready(table, 0, 10, ahead=True)
    table.take(segment)
    assert table.ahead == 0
    table.give_back(segment)
    assert table.make_room(10_000, ahead=True)
    assert table.held == 0


def test_giving_up_the_oldest():
    table = SegmentTable(10_000)
    for i in range(3):
        ready(table, 100 * i, 100 * i + 10, ahead=True)
    table.give_up(COST)
    assert bounds(table.over("x", 0, 1000)) == [(100, 110), (200, 210)]
    table.give_up(10_000)
    assert table.held == table.ahead == 0


@pytest.mark.parametrize("ahead", [True, False])
def test_removing(ahead):
    table = SegmentTable(10_000)
    segment = table.add("x", 0, 10, ahead)
    table.remove(segment)
    assert table.held == table.ahead == 0
    assert list(table.holes("x", 0, 10)) == [(0, 10)]
