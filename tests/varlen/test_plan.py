"""A plan is a value: taken apart, put together, shared out, compared."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen import PackPlan, Segments, concatenate, pack, whole_samples

LENGTHS = st.lists(st.integers(1, 9), max_size=30).map(lambda x: np.array(x, np.int64))


def as_lists(plan):
    return [plan[row].samples.tolist() for row in range(len(plan))]


@settings(deadline=None)
@given(LENGTHS, st.integers(0, 40))
def test_two_halves_are_the_whole(lengths, cut):
    plan = pack(lengths, 9)
    cut = min(cut, len(plan))
    first, second = plan.rows(0, cut), plan.rows(cut, len(plan))
    assert as_lists(first) + as_lists(second) == as_lists(plan)
    assert concatenate([first, second]) == plan


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 5))
def test_ranks_share_all_rows(lengths, ranks):
    plan = pack(lengths, 9).padded_to(ranks)
    shares = [as_lists(plan.share(rank, ranks)) for rank in range(ranks)]
    assert [row for rows in zip(*shares, strict=True) for row in rows] == as_lists(plan)


@settings(deadline=None)
@given(LENGTHS)
def test_starts_add_up_in_each_row(lengths):
    plan = pack(lengths, 9)
    expected = [s for row in range(len(plan)) for s in np.cumsum([0, *plan[row].lengths])[:-1]]
    assert plan.starts().tolist() == expected
    assert plan.row_tokens().sum() == plan.tokens == lengths.sum()


def test_plans_differ_by_anything_in_them():
    plan = pack(np.array([3, 4, 5]), 9)
    others = [
        pack(np.array([3, 4, 5]), 10),
        pack(np.array([3, 4, 6]), 9),
        pack(np.array([3, 4, 5]), 9, samples=np.array([3, 1, 2])),
        pack(np.array([3, 4, 5]), 9, max_segments=1),
        plan.padded_to(5),
        PackPlan(plan.segments, plan.row_splits, 9, lost_tokens=1),
        PackPlan(plan.segments, plan.row_splits, 9, lost_samples=1),
    ]
    assert len({plan, *others}) == len(others) + 1
    assert plan != "plan"
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_the_digest_is_pinned():
    """Ranks and restarts compare it, on any platform."""
    assert pack(np.array([3, 4, 5]), 9).digest.startswith("5d4907923477f048c214807444f8880e")


def test_a_plan_says_what_it_is():
    plan = pack(np.array([3, 4, 50]), 8, overflow="drop")
    assert repr(plan).startswith(
        "PackPlan(1 rows of 8, 2 segments, 7 tokens, 87.5% full, 50 tokens and 1 samples lost"
    )


def test_arrays_of_a_plan_are_read_only_and_the_callers_are_not():
    lengths, splits = np.array([3, 4]), np.array([0, 2])
    plan = PackPlan(Segments(np.arange(2), np.zeros(2, np.int64), lengths), splits, 9)
    for array in (plan.row_splits, plan.segments.lengths):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert lengths.flags.writeable
    assert splits.flags.writeable


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([], "row_splits must start at 0"),
        ([1, 3], "row_splits must start at 0"),
        ([0, 2, 1, 3], "never fall"),
        ([0, 2], "row_splits end at 2, but there are 3 segments"),
        ([0, 1, 3], "Row 1 has 9 tokens, more than its limit 8"),
    ],
)
def test_contradictions_are_refused(splits, message):
    with pytest.raises(ValueError, match=message):
        PackPlan(whole_samples(np.array([3, 4, 5])), np.array(splits, np.int64), 8)


def test_rows_and_ranks_that_do_not_exist_are_refused():
    plan = pack(np.array([3, 4, 5]), 5)
    with pytest.raises(IndexError, match="Row 3 of a plan of 3 rows"):
        plan[3]
    with pytest.raises(IndexError, match="Row -1 of a plan of 3 rows"):
        plan.take(np.array([0, -1]))
    with pytest.raises(ValueError, match="There is no rank 2 of 2; ranks are 0 to 1"):
        plan.share(2, 2)
    with pytest.raises(ValueError, match=r"3 rows do not divide .* 4 with plan.padded_to\(2\)"):
        plan.share(0, 2)
    with pytest.raises(ValueError, match=r"one limit, found limits \[5, 6\]"):
        concatenate([plan, pack(np.array([1]), 6)])
