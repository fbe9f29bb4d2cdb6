"""Which dataset is furthest behind its share: the greedy rule, without asking every dataset.

The rule: for sample t, with T = max(t, 1), draw the dataset with the largest error
`weight × T − drawn` in double arithmetic, the lowest number on a tie. Asking all D datasets for
each of n samples costs n × D. Three observations make it cheap, and change no result:

- Datasets of equal weight take turns, in the order of their numbers. So the rule runs over
  *lines*, one for each distinct weight; a line's head is the dataset whose turn it is.
- A line's error only grows until it is drawn. Over a block of steps, then, only lines whose error
  exceeds some cut at the block's end matter; they are gathered, and the rest are left out.
- Errors are linear in T, so the largest error among the lines left out lies under the chord
  between its values at the block's two ends. A winner among the gathered lines that is above the
  chord is the winner among all. Where it is not above, all lines are asked, for that one step.

A block of gathered lines is thinned once more in the same way, to a window of 32 lines that are
asked all at once; see `window`. The cut is steered towards a wanted number of lines; it affects
the speed alone.

Errors differ between members of a line by whole numbers, which doubles resolve up to 2^52 samples.
"""

import numpy as np

from coredata._kernel import kernel, part
from coredata.blending.lanes import DRAWN, WEIGHT
from coredata.blending.lines import draw_one, gather, hand_back, largest
from coredata.blending.window import LOWEST, draw_from, step_of

Level = tuple[int, int, int]
"""How lines are thinned: the steps of a block, and lines to gather, about and at most."""


@part
def kth_largest(values, n, k):
    """The k-th largest (k ≥ 1) of the first n values, which are reordered (Hoare's select)."""
    low = np.int64(0)
    high = np.int64(n - 1)
    wanted = np.int64(k - 1)
    while low < high:
        pivot = values[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return values[wanted]


@part
def thin(lines, names, n, first, last, cut, level, out, out_names, places, scratch):
    """Gather lines for the steps `first` to `last`, as many as `level` says; bound the rest.

    Returns the number gathered, the cut used, and the chord (height at `first`, slope) under
    which the errors of all other lines stay, rounding included.
    """
    _, wanted, room = level
    for attempt in range(2):
        found, low, high = gather(lines, names, n, first, last, cut, room, out, out_names, places)
        if attempt == 1 or n <= wanted or wanted // 2 <= found <= room:
            break
        for i in range(n):
            scratch[i] = lines[WEIGHT, i] * last - lines[DRAWN, i]
        cut = kth_largest(scratch, n, wanted)
    height = low
    slope = 0.0
    if high > -np.inf:
        # Each computed error is off by 2^-53 of its terms at most, and terms are below 2 × last.
        height += (abs(low) + abs(high) + 2.0 * last) * 2.0**-47
        if last > first:
            slope = (high - low) / (last - first)
    return min(found, room), cut, height, slope


@kernel
def draw(
    lines,
    members,
    order,
    every,
    block,
    block_names,
    window,
    names,
    places,
    winners,
    scratch,
    levels,
    careful,
    ties,
    dataset_index,
    dataset_sample_index,
):
    """Fill the two indices.

    Args:
        lines: changed as samples are drawn.
        members: changed.
        order: the datasets of all lines.
        every: the names of all lines, 0, 1, 2, …
        block, block_names: room for the lines of an outer block.
        window, names: room for those of an inner block, LANES.
        places: int64, a little longer than `lines`: scratch.
        winners: int64: scratch, for some of the winners of an inner block.
        scratch: float64, as long as `lines`.
        levels: of the outer and the inner blocks.
        careful: whether lines have limits or several datasets.
        ties: 0 where lines are in the order of their heads, which do not change; else 1.
        dataset_index: written.
        dataset_sample_index: written.
    """
    level1, level2 = levels
    steps1, wanted1, _ = level1
    steps2, wanted2, _ = level2
    size = np.int64(len(dataset_index))
    n = np.int64(len(members))
    cut1 = np.inf if n > wanted1 else -np.inf
    cut2 = np.inf if n > wanted2 else -np.inf
    t = np.int64(0)
    while t < size:
        end1 = min(t + steps1, size)
        first1 = step_of(t)
        last1 = step_of(end1 - 1)
        n1, cut1, height1, slope1 = thin(
            lines, every, n, first1, last1, cut1, level1, block, block_names, places, scratch
        )
        if n > wanted1:
            cut1 += 0.25 * (n1 - wanted1) / n
        while t < end1:
            end2 = min(t + steps2, end1)
            first2 = step_of(t)
            last2 = step_of(end2 - 1)
            n2, cut2, height2, slope2 = thin(
                block, block_names, n1, first2, last2, cut2, level2, window, names, places, scratch
            )
            if n > wanted2:
                cut2 += 0.25 * (n2 - wanted2) / n
            # The chord over both chords: what is under one of them is under it.
            low, high = height2, height2 + slope2 * (last2 - first2)
            low1, high1 = height1 + slope1 * (first2 - first1), height1 + slope1 * (last2 - first1)
            low = low if low > low1 else low1
            low = low if low > LOWEST else LOWEST
            high = high if high > high1 else high1
            high = high if high > LOWEST else LOWEST
            slope = (high - low) / (last2 - first2) if last2 > first2 else 0.0
            t = draw_from(
                window,
                names,
                n2,
                members,
                order,
                winners,
                careful,
                ties,
                low,
                slope,
                t,
                end2,
                dataset_index,
                dataset_sample_index,
            )
            hand_back(window, places, n2, block)
            if t == end2:
                continue
            k, error = largest(block, block_names, n1, members, step_of(t))
            if error <= height1 + slope1 * (step_of(t) - first1):
                break
            cut2 = min(cut2, error) - 0.25 * wanted2 / n
            own = members[block_names[k]]
            draw_one(block, k, own, order, t, dataset_index, dataset_sample_index)
            t += 1
        hand_back(block, block_names, n1, lines)
        if t < end1:
            k, error = largest(lines, every, n, members, step_of(t))
            cut1 = min(cut1, error) - 0.25 * wanted1 / n
            draw_one(lines, k, members[k], order, t, dataset_index, dataset_sample_index)
            t += 1
