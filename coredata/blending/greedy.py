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

A block of gathered lines is thinned once more in the same way, so a step costs about D^(1/3)
comparisons. The cut is steered towards a wanted number of lines; it affects the speed alone.

Errors differ between members of a line by whole numbers, which doubles resolve up to 2^52 samples.
"""

from typing import NamedTuple

import numpy as np

from coredata._kernel import kernel


class Lines(NamedTuple):
    """Error lines, `weight × T − drawn`, in arrays of one length.

    A spent line has drawn = infinity, so that it is never the largest.
    """

    weight: np.ndarray
    """float64."""
    drawn: np.ndarray
    """float64: samples drawn from the dataset whose turn it is."""
    head: np.ndarray
    """int64: the number of that dataset."""
    origin: np.ndarray
    """int64: which line of the level above this is."""


class Members(NamedTuple):
    """The datasets of each line, in the order of their numbers.

    Those of line g are `order[begin[g] : begin[g] + turns[g]]`.
    """

    order: np.ndarray
    begin: np.ndarray
    turns: np.ndarray
    limit: np.ndarray
    """float64: samples that each dataset of a line has to give; infinity for no limit."""


@kernel
def step_of(t):
    """T of sample t."""
    return np.float64(max(t, 1))


@kernel
def largest(lines, n, step):
    """The line with the largest error at T = `step`, lowest head on a tie; -1 if all are spent."""
    weight, drawn, head = lines.weight, lines.drawn, lines.head
    best = -np.inf
    winner = np.int64(-1)
    for j in range(n):
        error = weight[j] * step - drawn[j]
        if error > best or (error == best and winner >= 0 and head[j] < head[winner]):
            best = error
            winner = np.int64(j)
    return winner, best


@kernel
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


@kernel
def gather(lines, n, first, last, cut, out):
    """Gather the lines whose error at T = `last` is at least `cut`.

    Returns how many, and the largest error among the others at `first` and at `last`.
    """
    gathered = np.int64(0)
    low = -np.inf
    high = -np.inf
    for i in range(n):
        error = lines.weight[i] * last - lines.drawn[i]
        if error >= cut:
            out.weight[gathered] = lines.weight[i]
            out.drawn[gathered] = lines.drawn[i]
            out.head[gathered] = lines.head[i]
            out.origin[gathered] = i
            gathered += 1
        else:
            high = max(high, error)
            low = max(low, lines.weight[i] * first - lines.drawn[i])
    return gathered, low, high


@kernel
def thin(lines, n, first, last, cut, wanted, out, scratch):
    """Gather about `wanted` lines for the steps `first` to `last`, and bound the rest.

    Returns the number gathered, the cut used, and the chord (height at `first`, slope) under
    which the errors of all other lines stay, rounding included.
    """
    gathered, low, high = gather(lines, n, first, last, cut, out)
    if n > wanted and not wanted // 2 <= gathered <= 2 * wanted:
        for i in range(n):
            scratch[i] = lines.weight[i] * last - lines.drawn[i]
        cut = kth_largest(scratch, n, wanted)
        gathered, low, high = gather(lines, n, first, last, cut, out)
    height = low
    slope = 0.0
    if high > -np.inf:
        # Each computed error is off by 2^-53 of its terms at most, and terms are below 2 × last.
        height += (abs(low) + abs(high) + 2.0 * last) * 2.0**-49
        if last > first:
            slope = (high - low) / (last - first)
    return gathered, cut, height, slope


@kernel
def advance(lines, members, cursor, g):
    """Line g has been drawn: the turn goes to its next dataset."""
    turn = cursor[g] + 1
    if turn == members.turns[g]:
        turn = np.int64(0)
        lines.drawn[g] += 1.0
        if lines.drawn[g] == members.limit[g]:
            lines.drawn[g] = np.inf
    cursor[g] = turn
    lines.head[g] = members.order[members.begin[g] + turn]


@kernel
def draw(lines, members, outer, inner, scratch, plan, dataset_index, dataset_sample_index):
    """Fill the two indices. `plan` is (outer steps, outer lines, inner steps, inner lines)."""
    outer_steps, outer_lines, inner_steps, inner_lines = plan
    size = np.int64(len(dataset_index))
    n = np.int64(len(lines.weight))
    cursor = np.zeros(n, dtype=np.int64)
    outer_cut = np.inf if n > outer_lines else -np.inf
    inner_cut = np.inf if n > inner_lines else -np.inf
    t = np.int64(0)
    while t < size:
        outer_end = min(t + outer_steps, size)
        first1 = step_of(t)
        last1 = step_of(outer_end - 1)
        n1, outer_cut, height1, slope1 = thin(
            lines, n, first1, last1, outer_cut, outer_lines, outer, scratch
        )
        if n > outer_lines:
            outer_cut += 0.25 * (n1 - outer_lines) / n
        while t < outer_end:
            inner_end = min(t + inner_steps, outer_end)
            first2 = step_of(t)
            last2 = step_of(inner_end - 1)
            n2, inner_cut, height2, slope2 = thin(
                outer, n1, first2, last2, inner_cut, inner_lines, inner, scratch
            )
            if n > inner_lines:
                inner_cut += 0.25 * (n2 - inner_lines) / n
            while t < inner_end:
                step = step_of(t)
                j, error = largest(inner, n2, step)
                if error <= height2 + slope2 * (step - first2):
                    break
                if error <= height1 + slope1 * (step - first1):
                    break
                dataset_index[t] = inner.head[j]
                dataset_sample_index[t] = np.int64(inner.drawn[j])
                k = inner.origin[j]
                g = outer.origin[k]
                advance(lines, members, cursor, g)
                outer.drawn[k] = inner.drawn[j] = lines.drawn[g]
                outer.head[k] = inner.head[j] = lines.head[g]
                t += 1
            if t == inner_end:
                continue
            step = step_of(t)
            k, error = largest(outer, n1, step)
            if error <= height1 + slope1 * (step - first1):
                break
            inner_cut = min(inner_cut, error) - 0.25 * inner_lines / n
            dataset_index[t] = outer.head[k]
            dataset_sample_index[t] = np.int64(outer.drawn[k])
            g = outer.origin[k]
            advance(lines, members, cursor, g)
            outer.drawn[k] = lines.drawn[g]
            outer.head[k] = lines.head[g]
            t += 1
        if t < outer_end:
            g, error = largest(lines, n, step_of(t))
            outer_cut = min(outer_cut, error) - 0.25 * outer_lines / n
            dataset_index[t] = lines.head[g]
            dataset_sample_index[t] = np.int64(lines.drawn[g])
            advance(lines, members, cursor, g)
            t += 1
