"""Give every rank the same work: not only the same number of rows."""

from dataclasses import replace

import numpy as np

from coredata._typing import Int64
from coredata.varlen.plan import PackPlan, sums_by_row

COSTS = ("attention", "tokens")
"""What a row can cost: the sum over its segments of length squared, or of length."""


def row_costs(plan: PackPlan, cost: str = "attention") -> Int64[np.ndarray, " rows"]:
    """What each row costs. Exact: a row's limit is below 2^31.

    Raises:
        ValueError: an unknown cost.
    """
    if cost not in COSTS:
        raise ValueError(f"cost must be one of {', '.join(COSTS)}, found {cost!r}.")
    if cost == "tokens":
        return plan.row_tokens()
    # The running sum may wrap around; differences of it are right all the same.
    return sums_by_row(plan.segments.lengths**2, plan.row_splits)


def balance_rows(plan: PackPlan, ranks: int, cost: str = "attention") -> PackPlan:
    """Reorder rows so that the shares of `ranks` ranks cost about the same.

    Rows are sorted by cost; each microbatch is `ranks` neighbours in that order, which makes the
    sum of what its slowest rank costs as small as any choice can; and within a microbatch the
    dearest row goes to the rank that had least so far. Microbatches come in falling order of cost.
    Apply it to the rows of one global batch: it moves rows from anywhere to anywhere.

    Returns:
        The plan to take `share(rank, ranks)` of.

    Raises:
        ValueError: rows that do not divide evenly, no ranks, or an unknown cost.
    """
    if ranks < 1 or len(plan) % ranks:
        raise ValueError(
            f"{len(plan)} rows do not divide among {ranks} ranks. Use plan.padded_to(ranks) first."
        )
    costs = row_costs(plan, cost)
    order = np.argsort(-costs, kind="stable").reshape(-1, ranks)
    totals = [0] * ranks
    placed = np.empty_like(order)
    for microbatch, rows in enumerate(order):
        by_total = sorted(range(ranks), key=lambda rank: totals[rank])
        for rank, row in zip(by_total, rows.tolist(), strict=True):
            placed[microbatch, rank] = row
            totals[rank] += int(costs[row])
    return replace(
        plan.take(placed.reshape(-1)),
        lost_tokens=plan.lost_tokens,
        lost_samples=plan.lost_samples,
    )
