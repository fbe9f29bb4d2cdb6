"""Equal work for all ranks."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen import balance_rows, concatenate, pack, row_costs

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=25).map(np.array)


def spread(plan, ranks, cost):
    totals = row_costs(plan, cost).reshape(-1, ranks).sum(axis=0)
    return totals.max() - totals.min()


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 4), st.sampled_from(["attention", "tokens"]))
def test_the_rows_are_the_same_in_another_order(lengths, ranks, cost):
    plan = pack(lengths, 30).padded_to(ranks)
    balanced = balance_rows(plan, ranks, cost)
    rows = [sorted(p[r].samples.tolist() for r in range(len(p))) for p in (plan, balanced)]
    assert rows[0] == rows[1]
    costs = row_costs(balanced, cost).reshape(-1, ranks)
    assert spread(balanced, ranks, cost) <= costs.max()
    assert (np.diff(costs.max(axis=1)) <= 0).all()
    assert (costs[:-1].min(axis=1, initial=2**62) >= costs[1:].max(axis=1, initial=0)).all()


@settings(deadline=None)
@given(st.lists(st.integers(1, 30), min_size=6, max_size=6))
def test_no_order_has_cheaper_slowest_ranks(lengths):
    plan = concatenate([pack(np.array([n]), 30) for n in lengths])
    slowest = row_costs(balance_rows(plan, 2)).reshape(-1, 2).max(axis=1).sum()
    costs = np.square(lengths)
    assert slowest == min(
        costs[list(p)].reshape(-1, 2).max(axis=1).sum() for p in permutations(range(6))
    )


def test_attention_costs_squares_and_tokens_cost_lengths():
    plan = pack(np.array([3, 4, 5, 6]), 9)
    assert row_costs(plan).tolist() == [9 + 36, 16 + 25]
    assert row_costs(plan, "tokens").tolist() == [9, 9]


def test_costs_of_the_longest_rows_are_exact():
    most = 2**31 - 1
    plan = pack(np.full(5, most), most, packer="next_fit")
    assert row_costs(plan).tolist() == [most**2] * 5
    assert len(balance_rows(plan, 5)) == 5


def test_real_lengths_balance_better_than_they_come():
    lengths = np.clip(np.random.RandomState(0).lognormal(6, 1.2, 4000), 1, 8192).astype(np.int64)
    plan = pack(lengths, 8192).padded_to(8)
    assert spread(balance_rows(plan, 8), 8, "attention") < spread(plan, 8, "attention") / 10


def test_refusals():
    plan = pack(np.array([3, 4, 5]), 5, overflow="drop")
    with pytest.raises(ValueError, match="3 rows do not divide among 2 ranks"):
        balance_rows(plan, 2)
    with pytest.raises(ValueError, match="3 rows do not divide among 0 ranks"):
        balance_rows(plan, 0)
    with pytest.raises(ValueError, match="cost must be one of attention, tokens, found 'flops'"):
        balance_rows(plan, 3, "flops")


def test_losses_are_carried_along():
    plan = pack(np.array([3, 40]), 10, overflow="drop")
    assert balance_rows(plan, 1).lost_tokens == 40
    assert balance_rows(plan, 1).lost_samples == 1
