"""Which requests are made for which ranges; nothing is read."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.storage.ranges import RangePlan

SIZE = 10_000


def requests(ranges, size=SIZE, **limits):
    settings = {"gap": 0, "waste": 0.0, "largest": SIZE, **limits}
    offsets = np.array([a for a, _ in ranges], np.int64)
    lengths = np.array([n for _, n in ranges], np.int64)
    starts, stops = RangePlan(**settings).requests(offsets, lengths, size)
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def test_apart():
    assert requests([(500, 10), (100, 20)]) == [(100, 120), (500, 510)]


def test_nothing():
    assert requests([]) == []
    assert requests([(5, 0)]) == []


def test_touching_and_overlapping_ranges_are_one():
    assert requests([(0, 10), (10, 5), (12, 8), (3, 2)]) == [(0, 20)]


def test_a_range_inside_a_longer_one():
    assert requests([(0, 100), (10, 5), (50, 1), (200, 1)]) == [(0, 100), (200, 201)]


def test_gaps_up_to_the_limit_are_closed():
    ranges = [(0, 100), (110, 100), (221, 100)]
    assert requests(ranges, gap=10, waste=1.0) == [(0, 210), (221, 321)]
    assert requests(ranges, gap=11, waste=1.0) == [(0, 321)]


def test_the_smallest_gaps_are_closed_first_and_no_more_than_allowed():
    ranges = [(0, 100), (120, 100), (230, 100), (345, 100)]  # gaps of 20, 10, 15; 400 wanted
    assert requests(ranges, gap=50, waste=25 / 400) == [(0, 100), (120, 445)]
    assert requests(ranges, gap=50, waste=24 / 400) == [(0, 100), (120, 330), (345, 445)]
    assert requests(ranges, gap=50, waste=45 / 400) == [(0, 445)]


def test_long_ranges_are_cut():
    assert requests([(0, 250), (300, 100)], largest=100) == [
        (0, 100),
        (100, 200),
        (200, 250),
        (300, 400),
    ]


def test_no_gap_is_closed_if_the_request_would_be_too_large():
    ranges = [(0, 60), (65, 30), (100, 60)]
    assert requests(ranges, gap=9, waste=1.0, largest=100) == [(0, 95), (100, 160)]


def test_whole_units_up_to_the_end_of_the_file():
    assert requests([(70, 10), (990, 5)], size=1000, unit=64) == [(64, 128), (960, 1000)]
    assert requests([(0, 10), (60, 10)], size=1000, unit=64) == [(0, 128)]


def test_long_ranges_are_cut_between_units():
    found = requests([(10, 300)], size=1000, unit=64, largest=150)
    assert found == [(0, 128), (128, 256), (256, 320)]
    assert requests([(10, 100)], size=1000, unit=64, largest=10) == [(0, 64), (64, 128)]


def slow(ranges, gap, waste, largest, unit, size):
    """The same, written to be read: byte by byte, and gap by gap."""
    wanted = set()
    for offset, length in ranges:
        for byte in range(offset, offset + length):
            block = byte // unit * unit
            wanted.update(range(block, min(block + unit, size)))
    runs = []
    for byte in sorted(wanted):
        if runs and runs[-1][1] == byte:
            runs[-1][1] = byte + 1
        else:
            runs.append([byte, byte + 1])
    gaps = sorted(range(1, len(runs)), key=lambda i: (runs[i][0] - runs[i - 1][1], i))
    closed, spent = set(), 0
    for i in gaps:
        spent += runs[i][0] - runs[i - 1][1]
        if spent <= waste * len(wanted) and runs[i][0] - runs[i - 1][1] <= gap:
            closed.add(i)
    largest = max(largest // unit, 1) * unit
    found = []
    for i, (start, stop) in enumerate(runs):
        if found and i in closed and stop - found[-1][0] <= largest:
            found[-1] = (found[-1][0], stop)
            continue
        found += [(at, min(at + largest, stop)) for at in range(start, stop, largest)]
    return found


SMALL = st.integers(0, 30)


@given(
    st.lists(st.tuples(st.integers(0, 180), st.integers(0, 20)), max_size=12),
    SMALL,
    st.sampled_from([0.0, 0.1, 0.5, 3.0]),
    st.integers(1, 60),
    st.sampled_from([1, 7, 16]),
)
def test_like_the_slow_twin(ranges, gap, waste, largest, unit):
    found = requests(ranges, size=200, gap=gap, waste=waste, largest=largest, unit=unit)
    assert found == slow(ranges, gap, waste, largest, unit, 200)


@given(
    st.lists(st.tuples(st.integers(0, 9_000), st.integers(1, 900)), min_size=1, max_size=60),
    st.sampled_from([0.0, 0.2, 1.0]),
)
def test_waste_is_bounded_and_every_wanted_byte_is_in_one_request(ranges, waste):
    found = requests(ranges, gap=SIZE, waste=waste, largest=500)
    wanted = np.zeros(SIZE, bool)
    for offset, length in ranges:
        wanted[offset : offset + length] = True
    fetched = np.zeros(SIZE, np.int64)
    for start, stop in found:
        assert 0 < stop - start <= 500
        fetched[start:stop] += 1
    assert fetched.max() == 1
    assert (fetched[wanted] == 1).all()
    assert fetched.sum() <= (1 + waste) * wanted.sum()


def test_offsets_beyond_32_bits():
    far = 3 << 40
    assert requests([(far, 10), (far + 12, 3)], size=far + 100, gap=2, waste=1.0) == [
        (far, far + 15)
    ]


@pytest.mark.slow
def test_a_million_ranges_take_no_quadratic_time():
    rng = np.random.default_rng(1)
    plan = RangePlan(gap=16_384, waste=0.2, largest=1 << 22)

    def seconds(count):
        offsets = rng.integers(0, 1 << 40, count)
        lengths = rng.integers(1, 4_000, count)
        plan.requests(offsets[:10], lengths[:10], 1 << 41)
        begun = time.perf_counter()
        plan.requests(offsets, lengths, 1 << 41)
        return time.perf_counter() - begun

    assert seconds(1_000_000) < 60 * max(seconds(50_000), 0.005)
