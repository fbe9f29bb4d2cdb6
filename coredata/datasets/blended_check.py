"""What a blend refuses, and what it says then."""

import math
from collections.abc import Sequence

import numpy as np

from coredata._typing import Int64
from coredata.datasets.mid_level import MidLevelDataset


def check_blended(
    datasets: Sequence[MidLevelDataset], weights: Sequence[int | float], size: int | None
) -> None:
    """Refuse datasets and weights that make no blend.

    Raises:
        ValueError: see `BlendedDataset`.
    """
    if len(datasets) == 0:
        raise ValueError("a blend of no datasets; give at least one")
    if len(datasets) != len(weights):
        raise ValueError(
            f"a blend of {len(datasets)} datasets with {len(weights)} weights; give one each"
        )
    for name, kinds in (
        ("class", [type(dataset).__name__ for dataset in datasets]),
        ("split", [dataset.index_split.name for dataset in datasets]),
    ):
        other = next((i for i, kind in enumerate(kinds) if kind != kinds[0]), None)
        if other is not None:
            raise ValueError(
                f"a blend is of one {name}, but dataset 0 is of {name} {kinds[0]} and dataset"
                f" {other} of {kinds[other]}; make a blend of each"
            )
    for i, weight in enumerate(weights):
        if not (math.isfinite(weight) and weight >= 0) or (size is None and weight % 1):
            raise ValueError(
                f"dataset {i} ({_path(datasets[i])}) has weight {weight!r}; "
                + (
                    "give a finite number from 0 up"
                    if size is not None
                    else "without a size, weights are whole numbers of samples"
                )
            )
    if size is not None and size < 0:
        raise ValueError(f"a blend of {size} samples; give 0 or more, or None for all there are")


def check_not_oversampled(
    datasets: Sequence[MidLevelDataset],
    drawn: Int64[np.ndarray, " datasets"],
    surplus: int | float,
) -> None:
    """Refuse a blend that draws a dataset more often than it has samples.

    Args:
        datasets: what is blended.
        drawn: how often each is drawn.
        surplus: `mid_level_dataset_surplus` of the configuration.

    Raises:
        IndexError: it names the first such dataset and a surplus that is large enough for all.
    """
    lengths = [len(dataset) for dataset in datasets]
    over = np.flatnonzero(drawn > np.array(lengths)).tolist()
    if len(over) == 0:
        return
    first = over[0]
    needed = max(_surplus_for(datasets[i].num_samples, int(drawn[i]), surplus) for i in over)
    others = "" if len(over) == 1 else f" {len(over) - 1} more are drawn too often."
    raise IndexError(
        f"the {datasets[first].index_split.name} blend of {len(datasets)} datasets, of"
        f" {int(drawn.sum())} samples in all, draws {int(drawn[first])} samples of"
        f" {type(datasets[first]).__name__} number {first} ({_path(datasets[first])}), which has"
        f" {lengths[first]}.{others} Raise mid_level_dataset_surplus from {surplus} to {needed},"
        " so that more samples are built of each dataset. (A blend is longer than asked by up to"
        " one sample per dataset, which many small weights make felt: leaving out the smallest"
        " helps as well.)"
    )


def _surplus_for(built: int | None, drawn: int, surplus: int | float) -> float:
    """A surplus with which at least `drawn` samples are built, in three digits.

    `built` was ceil(target × (1 + surplus)), so the target is above (built − 1) / (1 + surplus).
    """
    target = max(((built or 0) - 1) / (1 + surplus), 1.0)
    exact = drawn / target - 1
    digits = 2 - math.floor(math.log10(max(exact, 1e-3)))
    return math.ceil(exact * 10**digits) / 10**digits


def _path(dataset: MidLevelDataset) -> str:
    return str(dataset.unique_identifiers.get("dataset_path"))
