"""Packing by best fit, beside a segment tree in pure Python."""

import numpy as np

from coredata.varlen import PackPlan, pack
from scripts.bench.harness import Row, compare

LIMIT = 8192


def rows(full: bool) -> list[Row]:
    return [row(1_000_000 if full else 50_000)]


def row(samples: int) -> Row:
    rng = np.random.default_rng(6)
    lengths = np.minimum(np.exp(rng.normal(6.5, 1.2, samples)).astype(np.int64) + 1, LIMIT)

    def ours() -> PackPlan:
        return pack(lengths, LIMIT)

    def other() -> list[int]:
        return best_fit_decreasing(lengths.tolist(), LIMIT)

    def same(plan: PackPlan, row_of: list[int]) -> None:
        numbers = np.repeat(np.arange(len(plan)), np.diff(plan.row_splits))
        found = np.empty(samples, np.int64)
        found[plan.segments.samples] = numbers
        np.testing.assert_array_equal(found, in_order_of_first_samples(row_of))

    what = f"best fit decreasing, {samples:,} lengths, rows of {LIMIT:,}"
    return compare("packers", ours, other, same, what)


def best_fit_decreasing(lengths: list[int], limit: int) -> list[int]:
    """The row of each length: a segment tree over rooms, whose leaves are stacks of rows."""
    size = 1
    while size <= limit:
        size *= 2
    count = [0] * (2 * size)
    stacks: list[list[int]] = [[] for _ in range(limit + 1)]
    row_of = [0] * len(lengths)
    used = 0
    for sample in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        length = lengths[sample]
        node = size + length
        found = count[node] > 0
        while node > 1 and not found:
            if node % 2 == 0 and count[node + 1]:
                node += 1
                found = True
            else:
                node //= 2
        if found:
            while node < size:
                node = 2 * node if count[2 * node] else 2 * node + 1
            room = node - size
            row = stacks[room].pop()
            while node:
                count[node] -= 1
                node //= 2
        else:
            row, room = used, limit
            used += 1
        row_of[sample] = row
        room -= length
        if room:
            stacks[room].append(row)
            node = size + room
            while node:
                count[node] += 1
                node //= 2
    return row_of


def in_order_of_first_samples(row_of: list[int]) -> np.ndarray:
    """The rows numbered anew, in the order of their first samples."""
    _, first, number = np.unique(row_of, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]
