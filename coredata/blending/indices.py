"""Which dataset gives each sample of a blend, as two arrays."""

import math

import numpy as np

from coredata._typing import Int64, Integer
from coredata.blending.greedy import Level, draw
from coredata.blending.lanes import LANES, no_lines
from coredata.blending.lines import UNLIMITED, make_lines
from coredata.blending.weights import Numbers, check_normalized
from coredata.blending.window import LOWEST, draw_few

Indices = tuple[Integer[np.ndarray, " samples"], Int64[np.ndarray, " samples"]]
"""dataset_index (int16, or int32 for more than 32,767 datasets) and dataset_sample_index."""

_STEPS = 16
"""Steps of an inner block: about half of a window is drawn in it."""
_WINNERS = 256
"""Samples drawn before they are written down: few enough to stay in the cache."""


def build_blending_indices(weights: Numbers, size: int) -> Indices:
    """Draw `size` samples from datasets in proportion to `weights`, which sum to 1.

    Sample t comes from the dataset that is furthest behind its share: the largest
    `weight × max(t, 1) − drawn` in double arithmetic, the lowest number on a tie. It yields its
    next sample. So the counts stay within a few samples of the shares all along, and the first
    samples of a longer blend are those of a shorter one. Same result as Megatron-LM's helper of
    this name, bit for bit; see `greedy` for why it does not cost size × datasets.

    Raises:
        ValueError: weights that `normalize` refuses or that do not sum to 1; a negative size.
    """
    check_normalized(weights)
    if size < 0:
        raise ValueError(f"the blend is asked for {size} samples; ask for 0 or more")
    values = np.array(weights, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
    return _draw(values, np.full(len(values), UNLIMITED), size)


def build_exhaustive_blending_indices(sizes: Numbers) -> Indices:
    """Draw every sample of every dataset once: `sizes[i]` from dataset i.

    The rule of `build_blending_indices` with the weights `sizes[i] / sum(sizes)`, over the
    datasets that are not yet spent. (Exactly computed, a spent one would never be drawn anyway;
    rounding could let it, past 10^8 samples.) A dataset of size 0 is never drawn.

    Raises:
        ValueError: no sizes, a negative one, or one that is not a whole number.
    """
    if len(sizes) == 0:
        raise ValueError("a blend needs at least one dataset; found no sizes")
    for i, size in enumerate(sizes):
        if not (size >= 0 and size == math.floor(size)):
            raise ValueError(
                f"size number {i} of {len(sizes)} is {size}; sizes are whole numbers from 0 up"
            )
    counts = np.array(sizes, dtype=np.int64)
    total = int(counts.sum())
    weights = counts / np.float64(max(total, 1))
    return _draw(weights, counts, total)


def _draw(weights: np.ndarray, limits: np.ndarray, size: int) -> Indices:
    lines, members, order = make_lines(weights, limits)
    n = len(members)
    every, winners = np.arange(n), np.empty(_WINNERS, np.int64)
    careful = bool(np.any(members["turns"] > 1) or np.any(limits < UNLIMITED))
    ties = int(len(weights) > LANES)
    dtype = np.int16 if len(weights) <= np.iinfo(np.int16).max else np.int32
    indices = np.empty(size, dtype), np.empty(size, np.int64)
    if n <= LANES:
        draw_few(
            lines, every, n, members, order, winners, careful, ties, LOWEST, 0.0, 0, size, *indices
        )
        return indices
    levels = _levels(n, size)
    _, _, room = levels[0]
    draw(
        lines,
        members,
        order,
        every,
        no_lines(room),
        np.empty(room, np.int64),
        no_lines(LANES),
        np.empty(LANES, np.int64),
        np.empty(n + LANES, np.int64),
        winners,
        np.empty(n),
        levels,
        careful,
        ties,
        *indices,
    )
    return indices


def _levels(n: int, size: int) -> tuple[Level, Level]:
    """Outer and inner blocks for n lines; from timings at 10 to 40,000 lines.

    A block of k steps draws k lines or fewer, so it gathers somewhat more. With few lines the outer
    level gathers all of them, once.
    """
    steps = _STEPS * max(round(2 * math.sqrt(n) / _STEPS), 1)
    outer = (steps, 3 * steps // 2, 4 * steps) if n > 4 * LANES else (max(size, 1), n, n)
    return outer, (_STEPS, _STEPS + 2, LANES)
