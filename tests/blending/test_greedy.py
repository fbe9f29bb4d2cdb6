"""The parts of the greedy rule's kernel, each against numpy."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata._kernel import kernel
from coredata.blending import build_blending_indices, greedy, normalize
from coredata.blending import lines as of_lines
from coredata.blending.greedy import draw
from coredata.blending.lanes import DRAWN, LANES, WEIGHT, draw_some, no_lines
from coredata.blending.lines import MEMBERS, UNLIMITED, make_lines

# What only kernels call, in kernels of its own.
gather, largest, kth_largest, thin = (
    kernel(part) for part in (of_lines.gather, of_lines.largest, greedy.kth_largest, greedy.thin)
)

errors = st.lists(st.floats(-5, 5) | st.sampled_from([0.0, 1.0, -np.inf]), min_size=1, max_size=80)


def lines_of(weights, drawn):
    n = len(weights)
    lines = no_lines(n)
    lines[WEIGHT, :n] = weights
    lines[DRAWN, :n] = drawn
    return lines


def shuffled_members(n):
    members = np.zeros(n, MEMBERS)
    members["head"] = np.random.default_rng(n).permutation(n)
    return members


@given(errors, st.data())
@settings(deadline=None)
def test_kth_largest(values, data):
    k = data.draw(st.integers(1, len(values)))
    array = np.array([*values, 99.0])  # what follows the first n is not looked at
    assert kth_largest(array, len(values), k) == sorted(values, reverse=True)[k - 1]


@given(errors)
@settings(deadline=None)
def test_largest(values):
    n = len(values)
    lines, members, names = (
        lines_of(np.zeros(n), -np.array(values)),
        shuffled_members(n),
        np.arange(n),
    )
    winner, error = largest(lines, names, n, members, 1.0)
    assert error == max(values)
    if error > -np.inf:
        ties = np.flatnonzero(np.array(values) == max(values))
        assert winner == ties[np.argmin(members["head"][ties])]


pairs_of_numbers = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 30)), min_size=1, max_size=100
)


@given(pairs_of_numbers, st.data())
@settings(deadline=None)
def test_thin_bounds_all_it_leaves_out(pairs, data):
    weights, drawn = map(np.array, zip(*pairs, strict=True))
    n = len(weights)
    lines = lines_of(weights, drawn)
    names = np.arange(n) + 1000
    first = data.draw(st.integers(1, 50))
    last = data.draw(st.integers(first, first + 40))
    wanted = data.draw(st.integers(1, n))
    room = data.draw(st.integers(wanted, n))
    out, out_names, places = no_lines(room), np.empty(room, np.int64), np.empty(n + LANES, np.int64)
    level = (99, wanted, room)
    gathered, _, height, slope = thin(
        lines,
        names,
        n,
        float(first),
        float(last),
        np.inf,
        level,
        out,
        out_names,
        places,
        np.empty(n),
    )
    assert gathered <= room
    kept = places[:gathered]
    assert np.array_equal(out[WEIGHT, :gathered], weights[kept])
    assert np.array_equal(out[DRAWN, :gathered], drawn[kept])
    assert np.all(out[DRAWN, gathered : -(-gathered // LANES) * LANES] == np.inf)
    assert np.array_equal(out_names[:gathered], names[kept])
    left = np.setdiff1d(np.arange(n), kept)
    for step in range(first, last + 1):
        assert np.all(weights[left] * step - drawn[left] <= height + slope * (step - first))


def test_gather_takes_those_at_the_cut_and_reads_frozen_arrays():
    lines = lines_of([0.5, 0.25, 0.75], [0.0, 0.0, 0.0])
    names = np.array([7, 8, 9])
    for array in (lines, names):
        array.flags.writeable = False
    out, out_names, places = no_lines(3), np.empty(3, np.int64), np.empty(3 + LANES, np.int64)
    found = gather(lines, names, 3, 1.0, 2.0, 1.0, 3, out, out_names, places)
    assert found == (2, 0.25, 0.5)
    assert out_names[:2].tolist() == [7, 9]
    assert places[:2].tolist() == [0, 2]


def test_gather_bounds_what_it_has_no_room_for():
    lines = lines_of([0.5, 0.25, 0.75], [0.0, 0.0, 0.0])
    out, out_names, places = no_lines(1), np.empty(1, np.int64), np.empty(3 + LANES, np.int64)
    found = gather(lines, np.arange(3), 3, 1.0, 2.0, 0.0, 1, out, out_names, places)
    assert found == (3, 0.75, 1.5)


@numba.njit
def run(lines, winners, span, care, ties, low, slope):
    return draw_some(lines, winners, span, care, ties, low, slope)


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]) | st.floats(0, 1), min_size=1, max_size=LANES))
@settings(deadline=None)
def test_some_draws(weights):
    n = len(weights)
    lines, winners = lines_of(weights, np.zeros(n)), np.empty(50, np.int64)
    assert run(lines, winners, (3, 53), 0, 0, -1e300, 0.0) == 50
    drawn = np.zeros(n)
    for i, t in enumerate(range(3, 53)):
        winner = int(np.argmax(np.array(weights) * float(t) - drawn))
        assert winners[i] == winner
        drawn[winner] += 1
    assert np.array_equal(lines[DRAWN, :n], drawn)


def test_draws_stop_before_what_needs_care_before_ties_and_at_the_chord():
    winners = np.empty(9, np.int64)
    weights = [0.5, 0.3, 0.2]
    assert run(lines_of(weights, [0, 0, 0]), winners, (1, 10), 0b010, 0, -9.0, 0.0) == 1
    assert run(lines_of(weights, [0, 0, 0]), winners, (1, 10), 0b100, 0, -9.0, 0.0) == 2
    equal = [0.25, 0.5, 0.25]
    assert run(lines_of(equal, [0, 0, 0]), winners, (1, 10), 0, 1, -9.0, 0.0) == 1
    assert run(lines_of(equal, [0, 0, 0]), winners, (1, 10), 0, 0, -9.0, 0.0) == 9
    # Errors of the winners: 0.5, 0.6, 0.6, then 1.0.
    assert run(lines_of(weights, [0, 0, 0]), winners, (1, 4), 0, 0, 0.5, 0.0) == 0
    assert run(lines_of(weights, [0, 0, 0]), winners, (1, 4), 0, 0, 0.4, 0.25) == 1
    assert run(lines_of(weights, [0, 0, 0]), winners, (1, 4), 0, 0, 0.4, 0.0) == 3


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_draw_where_blocks_are_far_too_small(data):
    """Plans that leave out almost all lines, so that every way back is taken; limits at will."""
    n = data.draw(st.integers(1, 40))
    few = st.floats(0, 1) | st.sampled_from([0.25, 0.5])
    weights = np.array(data.draw(st.lists(few, min_size=n, max_size=n)))
    of_weight = {w: data.draw(st.integers(0, 9) | st.just(UNLIMITED)) for w in weights.tolist()}
    limits = np.array([of_weight[w] for w in weights.tolist()])
    size = int(min(limits.sum(dtype=object), 60))
    lines, members, order = make_lines(weights, limits)
    count = len(members)
    room = data.draw(st.integers(1, count))
    outer = (data.draw(st.integers(1, 20)), data.draw(st.integers(1, room)), room)
    room = data.draw(st.integers(1, min(room, LANES)))
    inner = (data.draw(st.integers(1, 20)), data.draw(st.integers(1, room)), room)
    datasets, samples = np.empty(size, np.int16), np.empty(size, np.int64)
    draw(
        lines,
        members,
        order,
        np.arange(count),
        no_lines(count),
        np.empty(count, np.int64),
        no_lines(LANES),
        np.empty(LANES, np.int64),
        np.empty(count + LANES, np.int64),
        np.empty(data.draw(st.integers(1, 9)), np.int64),
        np.empty(count),
        (outer, inner),
        True,
        np.int64(1),
        datasets,
        samples,
    )
    drawn = np.zeros(n, np.int64)
    for t in range(size):
        error = np.where(drawn < limits, weights * float(max(t, 1)) - drawn, -np.inf)
        winner = np.argmax(error)
        assert (datasets[t], samples[t]) == (winner, drawn[winner])
        drawn[winner] += 1


@numba.njit
def plain_rule(weights, size):
    """The rule as it is stated, in compiled code, for long runs."""
    drawn = np.zeros(len(weights))
    datasets = np.empty(size, np.int64)
    for t in range(size):
        step = np.float64(max(t, 1))
        best = 0
        for i in range(1, len(weights)):
            if weights[i] * step - drawn[i] > weights[best] * step - drawn[best]:
                best = i
        datasets[t] = best
        drawn[best] += 1.0
    return datasets


@pytest.mark.parametrize("count", [2, 7, 32, 33, 60, 150])
def test_long_runs(count):
    weights = np.array(normalize(np.random.default_rng(count).random(count) ** 3))
    size = 1_000_000 if count < 100 else 300_000
    datasets, _ = build_blending_indices(weights, size)
    assert np.array_equal(datasets, plain_rule(weights, size))
