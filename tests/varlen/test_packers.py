"""Compiled packers against twins written for reading, and what every plan promises."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coredata.varlen import PACKERS, Segments, fit_to_limit, pack, pack_segments, whole_samples

BOUND = st.none() | st.integers(1, 5)


@st.composite
def jobs(draw):
    limit = draw(st.integers(1, 40))
    lengths = draw(st.lists(st.integers(1, limit), max_size=40))
    return np.array(lengths, np.int64), limit


def twin(lengths, limit, packer, max_segments, max_rows):
    """The rows, as lists of sample numbers, in the order they were opened."""
    rows, touched = [], []
    order = range(len(lengths))
    if packer.endswith("decreasing"):
        order = sorted(order, key=lambda i: -lengths[i])

    def room(row):
        return limit - sum(lengths[i] for i in rows[row])

    for moment, i in enumerate(order):
        fits = [
            row
            for row in range(len(rows))
            if lengths[i] <= room(row) and len(rows[row]) < (max_segments or 99)
        ]
        if packer.startswith("best"):
            fits.sort(key=lambda row: (room(row), -touched[row]))
        elif packer == "next_fit":
            fits = [row for row in fits if row == len(rows) - 1]
        if fits:
            rows[fits[0]].append(i)
            touched[fits[0]] = moment
        elif len(rows) < (max_rows or 99):
            rows.append([i])
            touched.append(moment)
    return rows


@settings(deadline=None)
@example((np.array([6] * 5 + [4] * 5), 10), "best_fit_decreasing", None, None)
@example((np.array([5, 9, 5, 9, 4, 1, 1]), 10), "best_fit", None, None)
@given(jobs(), st.sampled_from(PACKERS), BOUND, BOUND)
def test_matches_the_slow_twin(job, packer, max_segments, rows):
    lengths, limit = job
    plan, left = pack_segments(
        whole_samples(lengths), limit, packer=packer, max_segments=max_segments, rows=rows
    )
    expected = twin(lengths.tolist(), limit, packer, max_segments, rows)
    expected = sorted((sorted(row) for row in expected), key=lambda row: row[0])
    expected += [[]] * ((rows or 0) - len(expected))
    assert [plan[row].samples.tolist() for row in range(len(plan))] == expected
    placed = {i for row in expected for i in row}
    assert left.samples.tolist() == [i for i in range(len(lengths)) if i not in placed]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 63, 64, 65, 700, 4095, 4096, 5000]), max_size=60),
    st.sampled_from([5000, 2**16 + 1, 2**18, 2**20]),
    st.sampled_from(["best_fit_decreasing", "best_fit"]),
    BOUND,
)
def test_matches_the_slow_twin_in_long_rows_of_many_equal_segments(
    lengths, limit, packer, max_segments
):
    plan = pack(np.array(lengths, np.int64), limit, packer=packer, max_segments=max_segments)
    expected = sorted(sorted(row) for row in twin(lengths, limit, packer, max_segments, None))
    assert [plan[row].samples.tolist() for row in range(len(plan))] == expected


def test_lengths_much_larger_than_their_number_are_sorted_without_a_table():
    lengths = [2**20, 2**19, 2**20, 2**19 + 1, 2**19 - 1, 2**19]
    plan = pack(np.array(lengths), 2**20)
    expected = sorted(
        sorted(row) for row in twin(lengths, 2**20, "best_fit_decreasing", None, None)
    )
    assert [plan[row].samples.tolist() for row in range(len(plan))] == expected


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 100), max_size=50),
    st.integers(1, 40),
    st.sampled_from(PACKERS),
    BOUND,
    st.sampled_from(["split", "truncate", "drop"]),
)
def test_nothing_is_lost_nothing_comes_twice_and_limits_hold(
    lengths, limit, packer, max_segments, overflow
):
    lengths = np.array(lengths, np.int32)
    plan = pack(lengths, limit, packer=packer, max_segments=max_segments, overflow=overflow)
    assert (plan.row_tokens() <= limit).all()
    assert (plan.row_segments() >= 1).all()
    assert (plan.row_segments() <= (max_segments or 99)).all()
    tokens = [
        (sample, offset + k)
        for sample, offset, length in zip(
            plan.segments.samples, plan.segments.offsets, plan.segments.lengths, strict=True
        )
        for k in range(length)
    ]
    kept = {"split": lengths, "truncate": np.minimum(lengths, limit)}
    kept = kept.get(overflow, np.where(lengths > limit, 0, lengths))
    assert sorted(tokens) == [(s, k) for s, n in enumerate(kept) for k in range(n)]
    assert plan.lost_tokens == int(lengths.sum() - kept.sum())
    assert plan.lost_samples == (int((lengths > limit).sum()) if overflow == "drop" else 0)
    whole = plan.segments.samples[lengths[plan.segments.samples] <= limit]
    assert len(set(whole.tolist())) == len(whole), "a sample that fits was cut"


@settings(deadline=None)
@given(jobs(), st.sampled_from(PACKERS))
def test_plans_follow_from_their_arguments(job, packer):
    lengths, limit = job
    once, again = (pack(lengths, limit, packer=packer) for _ in range(2))
    assert once == again
    assert hash(once) == hash(again)
    assert repr(once) == repr(again)


@settings(deadline=None)
@given(jobs())
def test_best_fit_decreasing_keeps_its_worst_case(job):
    lengths, limit = job
    bound = -(-int(lengths.sum()) // limit)
    assert len(pack(lengths, limit)) <= max(2 * bound - 1, 0) + (lengths.size > 0)


def test_rows_come_in_the_order_of_their_first_segment():
    plan = pack(np.array([1, 9, 10, 2, 8]), 10)
    assert [plan[row].samples.tolist() for row in range(3)] == [[0, 1], [2], [3, 4]]


def test_left_over_segments_fill_the_next_rows():
    left = whole_samples(np.array([6, 6, 6, 4, 4, 4]))
    seen = []
    while len(left):
        plan, left = pack_segments(left, 10, rows=2)
        assert len(plan) == 2
        seen += plan.segments.samples.tolist()
    assert sorted(seen) == list(range(6))


def test_read_only_and_narrow_lengths_are_fine():
    lengths = np.array([3, 4, 5], np.uint16)
    lengths.flags.writeable = False
    assert len(pack(lengths, 7)) == 2


def test_a_limit_far_above_the_tokens_costs_no_memory():
    plan = pack(np.array([3, 4, 5]), 2**31 - 1)
    assert len(plan) == 1
    assert plan.limit == 2**31 - 1


@pytest.mark.parametrize("packer", ["best_fit_decreasing", "best_fit"])
def test_best_fit_refuses_rows_that_its_table_is_too_long_for(packer):
    lengths = np.full(3, 2**24)
    message = r"keeps a table of 33554433 entries.* Use packer='first_fit_decreasing'"
    with pytest.raises(ValueError, match=message):
        pack(lengths, 2**25 + 1, packer=packer)
    assert len(pack(lengths, 2**25 + 1, packer="first_fit_decreasing")) == 2


def test_no_samples_make_no_rows():
    for packer in PACKERS:
        plan = pack(np.empty(0, np.int64), 8, packer=packer)
        assert (len(plan), plan.tokens, plan.efficiency) == (0, 0, 1.0)


def test_splitting_makes_full_rows_and_a_rest():
    fitted = fit_to_limit(whole_samples(np.array([5, 23, 10])), 10, "split")
    assert fitted.segments.samples.tolist() == [0, 1, 1, 1, 2]
    assert fitted.segments.offsets.tolist() == [0, 0, 10, 20, 0]
    assert fitted.segments.lengths.tolist() == [5, 10, 10, 3, 10]


def test_a_long_sample_is_refused_unless_told_otherwise():
    message = (
        r"Sample 71 has 23 tokens, more than the 10 of a row; 2 of 3 samples do\. "
        r"Use a limit of 40 or more, or overflow='split', 'truncate' or 'drop'"
    )
    with pytest.raises(ValueError, match=message):
        pack(np.array([5, 23, 40]), 10, samples=np.array([70, 71, 72]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"packer": "worst_fit"}, "packer must be one of best_fit_decreasing, .* 'worst_fit'"),
        ({"overflow": "wrap"}, "overflow must be one of error, split, .* found 'wrap'"),
        ({"max_segments": 0}, "max_segments must be at least 1, or None for no bound; found 0"),
        ({"limit": 0}, r"limit is the number of tokens in a row, 1 to 2147483647 .* found 0"),
        ({"limit": 2**31}, r"limit is .* found 2147483648\. Give e\.g\. limit=4096"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        pack(np.array([3]), **{"limit": 10, **arguments})


def test_bad_lengths_are_refused():
    with pytest.raises(ValueError, match=r"Sample 1 has -4 tokens; a length is 0 or more"):
        pack(np.array([3, -4]), 10)
    zero = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="A segment without tokens cannot be packed"):
        pack_segments(Segments(zero, zero, zero), 10)
    with pytest.raises(ValueError, match="rows must be at least 1, or None for no bound; found 0"):
        pack_segments(whole_samples(np.array([1])), 10, rows=0)
