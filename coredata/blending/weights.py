"""What share each dataset has in a blend, and how many samples that is."""

import math
from collections.abc import Sequence

import numpy as np

Numbers = Sequence[float | int] | np.ndarray
"""Weights or sizes, one for each dataset."""


def normalize(weights: Numbers) -> list[float]:
    """The weights divided by their sum, in double precision.

    Raises:
        ValueError: no weights, a negative or non-finite one (it is named by its position), or
            none above zero.
    """
    values = np.array(weights, dtype=np.float64)
    _check(values)
    return (values / np.sum(values)).tolist()


def get_size_per_split_per_dataset(
    normalized_weights: Numbers,
    target_size_per_split: Sequence[int],
    surplus: float = 0.0,
) -> list[list[int]]:
    """Samples to take (or, with a surplus, to build) of each dataset for each split.

    `ceil(ceil(size × weight) × (1 + surplus))`, first index: dataset, second: split. Because of
    the rounding up, a blend is a little longer than asked: by less than one sample per dataset.

    Raises:
        ValueError: weights that are not normalised, a negative size, or a negative surplus.
    """
    check_normalized(normalized_weights)
    for split, size in enumerate(target_size_per_split):
        if size < 0:
            raise ValueError(f"split {split} asks for {size} samples; ask for 0 or more")
    if not (math.isfinite(surplus) and surplus >= 0):
        raise ValueError(f"the surplus is {surplus}; give a number from 0 up, such as 0.005")
    return [
        [math.ceil(math.ceil(size * weight) * (1 + surplus)) for size in target_size_per_split]
        for weight in normalized_weights
    ]


def check_normalized(weights: Numbers) -> None:
    """Refuse weights that do not sum to 1, within rounding.

    Raises:
        ValueError: as `normalize`, or a sum that is not 1.
    """
    values = np.array(weights, dtype=np.float64)
    _check(values)
    total = float(np.sum(values))
    if not math.isclose(total, 1.0, rel_tol=1e-5):
        raise ValueError(
            f"the {len(values)} weights sum to {total}, not to 1; pass normalize(weights)"
        )


def _check(values: np.ndarray) -> None:
    if values.ndim != 1 or len(values) == 0:
        raise ValueError("a blend needs one weight per dataset; found none")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(
            f"weight number {wrong[0]} of {len(values)} is {values[wrong[0]]}; weights are finite"
            " numbers from 0 up, such as 0.3"
        )
    if not np.any(values > 0):
        raise ValueError(
            f"all {len(values)} weights are 0, so no dataset would be drawn; give at least one a"
            " weight above 0"
        )
    with np.errstate(over="ignore"):
        total = np.sum(values)
    if not np.isfinite(total):
        raise ValueError(
            f"the sum of the {len(values)} weights is larger than a double holds; divide them all"
            " by the largest"
        )
