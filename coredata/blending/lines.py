"""Lines: the datasets of one weight, and how far behind its share each line is."""

import numpy as np

from coredata._bits import lowest_bit
from coredata._kernel import part
from coredata.blending.lanes import (
    DRAWN,
    LANES,
    WEIGHT,
    find_above,
    find_largest,
    no_lines,
)

MEMBERS = np.dtype(
    [(name, "i8") for name in ("begin", "turns", "limit", "cursor", "head", "count")]
)
"""The datasets of a line: `order[begin : begin + turns]`, in the order of their numbers.

begin: where in `order` they begin.
turns: how many they are.
limit: samples that each of them has to give, UNLIMITED or fewer.
cursor: how many of them had their turn in this round.
head: the dataset whose turn it is.
count: samples drawn from that dataset.
"""

UNLIMITED = 2**62
_AT_ONCE = 8


def make_lines(
    weights: np.ndarray, limits: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines, their members, and `order`.

    There is one for each distinct weight; of equal weights, limits are equal too. Only where so
    few datasets are all asked at every step anyway, each has a line of its own, in order. What a
    line has drawn is what the dataset has whose turn it is; infinity for a line that is spent.
    """
    if len(weights) <= LANES:
        order = starts = np.arange(len(weights))
    else:
        order = np.argsort(weights, kind="stable")
        starts = np.flatnonzero(np.diff(weights[order], prepend=-1.0))
    members = np.zeros(len(starts), MEMBERS)
    members["begin"] = starts
    members["turns"] = np.diff(starts, append=len(order))
    members["limit"] = limits[order[starts]]
    members["head"] = order[starts]
    lines = no_lines(len(starts))
    lines[WEIGHT, : len(starts)] = weights[order[starts]]
    lines[DRAWN, : len(starts)] = np.where(members["limit"] == 0, np.inf, 0.0)
    return lines, members, order


@part
def draw_one(lines, k, own, order, t, dataset_index, dataset_sample_index):
    """Sample t comes from line k, and the turn goes to the next of its `own` datasets."""
    dataset_index[t] = own.head
    dataset_sample_index[t] = own.count
    own.cursor += 1
    if own.cursor == own.turns:
        own.cursor = 0
        own.count += 1
        lines[DRAWN, k] = np.inf if own.count == own.limit else np.float64(own.count)
    own.head = order[own.begin + own.cursor]


@part
def hand_back(block, places, n, lines):
    """What n lines of a block have drawn, copied to those that it was gathered from."""
    for k in range(n):
        lines[DRAWN, places[k]] = block[DRAWN, k]


@part
def largest(lines, names, n, members, step):
    """Of n lines, which has the largest error at T = `step`, the lowest head on a tie; the error.

    Line j here is line `names[j]` of all. Where all are spent, the error is -infinity.
    """
    most = -np.inf
    winner = np.int64(0)
    for first in range(0, n, LANES):
        error, found = find_largest(lines, np.int64(first), step)
        if error < most or error == -np.inf:
            continue
        while found != 0:
            j = first + lowest_bit(found)
            if error > most or members[names[j]].head < members[names[winner]].head:
                winner = j
            most = error
            found &= found - 1
    return winner, most


@part
def gather(lines, names, n, first, last, cut, room, out, out_names, places):
    """Gather those of n lines whose error at T = `last` is at least `cut`, while there is room.

    They and their names are copied to `out` and `out_names`; `places` tells which they were.
    Returns how many, and the largest error among the others at `first` and at `last`.
    """
    found = np.int64(0)
    low = -np.inf
    high = -np.inf
    for begin in range(0, n, LANES):
        above, count, early, late = find_above(lines, np.int64(begin), cut, first, last)
        low = max(low, early)
        high = max(high, late)
        # Several at once, more than there are if need be: fewer branches, which cannot be guessed.
        while count > 0:
            for k in range(_AT_ONCE):
                places[found + k] = begin + lowest_bit(above)
                above &= above - 1
            found += min(count, _AT_ONCE)
            count -= _AT_ONCE
    gathered = min(found, room)
    for j in range(gathered):
        i = places[j]
        out[WEIGHT, j] = lines[WEIGHT, i]
        out[DRAWN, j] = lines[DRAWN, i]
        out_names[j] = names[i]
    for j in range(gathered, found):
        low = max(low, lines[WEIGHT, places[j]] * first - lines[DRAWN, places[j]])
        high = max(high, lines[WEIGHT, places[j]] * last - lines[DRAWN, places[j]])
    for j in range(gathered, -(-max(gathered, 1) // LANES) * LANES):
        out[DRAWN, j] = np.inf
    return found, low, high
