"""Which dataset gives each sample of a blend, as two arrays."""

import math

import numpy as np

from coredata._typing import Int64, Integer
from coredata.blending.greedy import Lines, Members, draw
from coredata.blending.weights import Numbers, check_normalized

Indices = tuple[Integer[np.ndarray, " samples"], Int64[np.ndarray, " samples"]]
"""dataset_index (int16, or int32 for more than 32,767 datasets) and dataset_sample_index."""


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
    return _draw(values, np.full(len(values), np.inf), size)


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
    return _draw(weights, counts.astype(np.float64), total)


def _draw(weights: np.ndarray, limits: np.ndarray, size: int) -> Indices:
    dtype = np.int16 if len(weights) <= np.iinfo(np.int16).max else np.int32
    dataset_index = np.empty(size, dtype=dtype)
    dataset_sample_index = np.empty(size, dtype=np.int64)
    lines, members = _lines(weights, limits)
    n = len(lines.weight)
    plan = _plan(n, size)
    outer, inner = _empty_lines(n), _empty_lines(n)
    draw(lines, members, outer, inner, np.empty(n), plan, dataset_index, dataset_sample_index)
    return dataset_index, dataset_sample_index


def _lines(weights: np.ndarray, limits: np.ndarray) -> tuple[Lines, Members]:
    """One line for each distinct weight (of equal weights, limits are equal too)."""
    order = np.argsort(weights, kind="stable")
    ordered = weights[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(np.concatenate([starts, [len(order)]]))
    heads = order[starts]
    drawn = np.where(limits[heads] == 0, np.inf, 0.0)
    lines = Lines(ordered[starts], drawn, heads, np.arange(len(starts), dtype=np.int64))
    return lines, Members(order, starts, counts, limits[heads])


def _empty_lines(n: int) -> Lines:
    return Lines(np.empty(n), np.empty(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64))


def _plan(n: int, size: int) -> tuple[int, int, int, int]:
    """Steps and lines of an outer and an inner block; from timings at 10 to 40,000 lines.

    A block of k steps draws k lines or fewer, so it gathers 2k. With few lines a level gathers
    all of them, once.
    """
    outer_steps = 2 * math.isqrt(n) if n > 128 else max(size, 1)
    inner_steps = 8 if n > 24 else max(size, 1)
    return (
        outer_steps,
        2 * outer_steps if n > 128 else n,
        inner_steps,
        2 * inner_steps if n > 24 else n,
    )
