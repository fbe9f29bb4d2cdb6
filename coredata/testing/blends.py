"""Blends: shares that hold at every point, and samples that come in order."""

import math
from collections.abc import Sequence

import numpy as np

from coredata._typing import Integer


def assert_blend_shares(
    dataset_index: Integer[np.ndarray, " samples"],
    weights: Sequence[float],
    *,
    tolerance: float | None = None,
) -> None:
    """Each dataset keeps to its share of the blend, at every point and not only at the end.

    Drawing from the dataset that is furthest behind never puts one more than a sample ahead, and
    leaves none further behind than about the logarithm of their number (it is the game of
    emptying the fullest of D cups, whose bound is 1 + 1/2 + … + 1/D).

    Args:
        dataset_index: the dataset of each sample.
        weights: the share of each dataset; they need not sum to 1.
        tolerance: samples that one may be behind; by default the bound above, plus 1.

    Raises:
        AssertionError: a dataset that is ahead or behind; it names it, the point and the counts.
    """
    shares = np.asarray(weights, np.float64) / math.fsum(weights)
    behind = 2 + math.log(len(shares)) if tolerance is None else tolerance
    if len(dataset_index) and not 0 <= dataset_index.min() <= dataset_index.max() < len(shares):
        raise AssertionError(
            f"blend: it draws from dataset {dataset_index.max()}, but there are {len(shares)}"
        )
    points = np.argsort(dataset_index, kind="stable").astype(np.int64)
    counts = np.bincount(dataset_index, minlength=len(shares))
    first = np.cumsum(counts) - counts
    drawn = np.arange(len(points)) - np.repeat(first, counts)  # before the draw at `points`
    share = np.repeat(shares, counts)
    _refuse(drawn + 1 - share * (points + 1) > 1 + 1e-6, "ahead of", points + 1, drawn + 1, share)
    _refuse(share * points - drawn > behind, "behind", points, drawn, share)
    total = np.full(len(shares), len(points), np.int64)
    _refuse(shares * len(points) - counts > behind, "behind", total, counts, shares)


def _refuse(
    wrong: np.ndarray, how: str, points: np.ndarray, drawn: np.ndarray, share: np.ndarray
) -> None:
    """Name the first that is wrong."""
    if wrong.any():
        at = int(wrong.argmax())
        raise AssertionError(
            f"blend: a dataset is {how} its share: of the first {points[at]} samples it has "
            f"{drawn[at]}, its share is {share[at]:.6g}, which is {share[at] * points[at]:.2f}"
        )


def assert_blend_sequential(
    dataset_index: Integer[np.ndarray, " samples"],
    dataset_sample_index: Integer[np.ndarray, " samples"],
) -> None:
    """Each dataset of a blend yields its samples 0, 1, 2, … in order.

    Raises:
        AssertionError: one does not; it names the sample of the blend and the numbers.
    """
    points = np.argsort(dataset_index, kind="stable")
    counts = np.bincount(dataset_index)
    expected = np.arange(len(points)) - np.repeat(np.cumsum(counts) - counts, counts)
    wrong = dataset_sample_index[points] != expected
    if wrong.any():
        at = int(points[wrong].min())
        number = int(expected[points == at][0])
        raise AssertionError(
            f"blend: sample {at} is number {dataset_sample_index[at]} of dataset "
            f"{dataset_index[at]}, expected its number {number}"
        )
