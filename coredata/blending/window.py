"""Drawing from a window: 32 lines or fewer, among which the next samples are found.

A blend of so few lines is one window from beginning to end. Blends of more go from one window to
the next; see `greedy`.
"""

import numpy as np

from coredata._kernel import inlined, kernel, part
from coredata.blending.lanes import draw_some
from coredata.blending.lines import draw_one, largest

LOWEST = -1e300
"""Below the error of any line that is not spent."""


@part
def step_of(t):
    """T of sample t."""
    return np.float64(t if t > 1 else 1)


@inlined
def draw_from(
    window,
    names,
    n,
    members,
    order,
    winners,
    careful,
    ties,
    low,
    slope,
    t,
    end,
    dataset_index,
    dataset_sample_index,
):
    """Draw samples t … end-1, as long as there is a line above a chord; the first not drawn.

    Args:
        window: the lines, changed as samples are drawn.
        names: of these lines, among all.
        n: how many they are.
        members: of all lines, changed.
        order: the datasets of all lines.
        winners: int64: scratch, for some of the winners.
        careful: whether lines have limits or several datasets.
        ties: 0 where lines are in the order of their heads, which do not change; else 1.
        low, slope: the chord, from sample t on.
        t, end: which samples.
        dataset_index: written.
        dataset_sample_index: written.
    """
    begin = step_of(t)
    while t < end:
        if t > 0:
            last = min(end, t + len(winners))
            care = _care(names, n, members, last - t) if careful else np.int64(0)
            bound = low + slope * (t - begin)
            for i in range(draw_some(window, winners, (t, last), care, ties, bound, slope)):
                own = members[names[winners[i]]]
                dataset_index[t] = own.head
                dataset_sample_index[t] = own.count
                own.count += 1
                t += 1
            if t == last:
                continue
        step = step_of(t)
        j, error = largest(window, names, n, members, step)
        if error <= low + slope * (step - begin):
            break
        draw_one(window, j, members[names[j]], order, t, dataset_index, dataset_sample_index)
        t += 1
    return t


@part
def _care(names, n, members, steps):
    """Lanes, as bits, that in so many steps may be spent, or whose turn changes at each draw."""
    care = np.int64(0)
    for j in range(n):
        own = members[names[j]]
        if own.turns > 1 or own.limit - own.count <= steps:
            care |= np.int64(1) << j
    return care


draw_few = kernel(draw_from)
"""`draw_from`, for calls from Python."""
