"""The parts of the greedy rule's kernel, each against numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.blending.greedy import Lines, Members, draw, gather, kth_largest, largest, thin

errors = st.lists(st.floats(-5, 5) | st.sampled_from([0.0, 1.0, -np.inf]), min_size=1, max_size=50)


def lines_of(weights, drawn):
    n = len(weights)
    heads = np.random.default_rng(n).permutation(n).astype(np.int64)
    return Lines(np.array(weights), np.array(drawn), heads, np.arange(n, dtype=np.int64))


def empty(n):
    return lines_of(np.empty(n), np.empty(n))


@given(errors, st.data())
@settings(deadline=None)
def test_kth_largest(values, data):
    k = data.draw(st.integers(1, len(values)))
    array = np.array([*values, 99.0])  # what follows the first n is not looked at
    assert kth_largest(array, len(values), k) == sorted(values, reverse=True)[k - 1]


@given(errors)
@settings(deadline=None)
def test_largest(values):
    lines = lines_of(np.zeros(len(values)), -np.array(values))
    winner, error = largest(lines, len(values), 1.0)
    if max(values) == -np.inf:
        assert winner == -1
        return
    assert error == max(values)
    ties = np.flatnonzero(np.array(values) == max(values))
    assert winner == ties[np.argmin(lines.head[ties])]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30)), min_size=1, max_size=60), st.data())
@settings(deadline=None)
def test_thin_bounds_all_it_leaves_out(pairs, data):
    weights, drawn = map(np.array, zip(*pairs, strict=True))
    n = len(weights)
    lines = lines_of(weights, drawn.astype(np.float64))
    first = data.draw(st.integers(1, 50))
    last = data.draw(st.integers(first, first + 40))
    wanted = data.draw(st.integers(1, n))
    out = empty(n)
    gathered, _, height, slope = thin(
        lines, n, float(first), float(last), np.inf, wanted, out, np.empty(n)
    )
    kept = out.origin[:gathered]
    assert np.array_equal(out.weight[:gathered], weights[kept])
    left = np.setdiff1d(np.arange(n), kept)
    for step in range(first, last + 1):
        assert np.all(weights[left] * step - drawn[left] <= height + slope * (step - first))


def test_gather_takes_those_at_the_cut_and_reads_frozen_arrays():
    lines = lines_of([0.5, 0.25, 0.75], [0.0, 0.0, 0.0])
    for array in lines:
        array.flags.writeable = False
    out = empty(3)
    assert gather(lines, 3, 1.0, 2.0, 1.0, out) == (2, 0.25, 0.5)
    assert out.origin[:2].tolist() == [0, 2]


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_draw_where_blocks_are_far_too_small(data):
    """Plans that leave out almost all lines, so that every way back is taken; limits at will."""
    n = data.draw(st.integers(1, 12))
    weights = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    limits = data.draw(st.lists(st.integers(0, 9) | st.just(np.inf), min_size=n, max_size=n))
    size = int(min(sum(limits), 40))
    outer = data.draw(st.tuples(st.integers(1, 20), st.integers(1, n)))
    inner = data.draw(st.tuples(st.integers(1, 20), st.integers(1, n)))
    heads = np.arange(n)
    lines = Lines(weights.copy(), np.where(np.array(limits) == 0, np.inf, 0.0), heads.copy(), heads)
    members = Members(heads, heads, np.ones(n, np.int64), np.array(limits, np.float64))
    datasets, samples = np.empty(size, np.int16), np.empty(size, np.int64)
    draw(lines, members, empty(n), empty(n), np.empty(n), (*outer, *inner), datasets, samples)

    drawn = np.zeros(n, np.int64)
    for t in range(size):
        error = np.where(drawn < limits, weights * float(max(t, 1)) - drawn, -np.inf)
        winner = np.argmax(error)
        assert (datasets[t], samples[t]) == (winner, drawn[winner])
        drawn[winner] += 1
