"""Which datasets a configuration asks for, before any file is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from coredata.blending import get_size_per_split_per_dataset, normalize
from coredata.datasets.config import BlendedMegatronDatasetConfig
from coredata.indices import Bookends, Split

WHOLE: Bookends = (0.0, 1.0)
"""All of a file."""


@dataclass(frozen=True)
class Part:
    """One dataset: a split of a file.

    Attributes:
        prefix: the file's prefix; None for made-up data.
        split: which split it is.
        bookends: which share of the file it covers.
        num_samples: samples to build; None for one epoch.
    """

    prefix: str | None
    split: Split
    bookends: Bookends
    num_samples: int | None


@dataclass(frozen=True)
class SplitPlan:
    """One of the three results of a builder.

    Attributes:
        split: which.
        form: a single dataset, a blend of several, or a list of several.
        parts: the datasets.
        weights: of a blend, normalised; None to weight each by its length.
        size: of a blend: its samples, if there are weights; else the samples asked for, of which
            there may be fewer, or None for all there are.
    """

    split: Split
    form: Literal["single", "blend", "list"]
    parts: tuple[Part, ...]
    weights: tuple[float, ...] | None = None
    size: int | None = None


Blend = tuple[Sequence[str], Sequence[int | float] | None]


def plan_splits(
    config: BlendedMegatronDatasetConfig, sizes: Sequence[int | None]
) -> list[SplitPlan | None]:
    """What to build for train, valid and test; None where a split has no share or no blend.

    Args:
        config: blends, splits and how they are treated.
        sizes: samples asked of each split; None for what one epoch gives.

    Raises:
        ValueError: not three sizes, a negative one, or a blend with weights but no size.
    """
    _check_sizes(sizes)
    plans: list[SplitPlan | None] = []
    for split in Split:
        size = sizes[split.value]
        if split is Split.valid and config.full_validation:
            size = None
        blend, bookends = _blend_of(config, split)
        if bookends is None:
            plans.append(None)
        elif blend is None:
            plans.append(SplitPlan(split, "single", (Part(None, split, bookends, size),)))
        else:
            plans.append(_plan_split(config, split, blend, bookends, size))
    return plans


def _blend_of(
    config: BlendedMegatronDatasetConfig, split: Split
) -> tuple[Blend | None, Bookends | None]:
    """The files of a split, and the share of them; no files for mock data, no share for none."""
    if _per_split(config):
        blends = config.blend_per_split or [None] * len(Split)
        blend = blends[split.value]
        return blend, (None if blend is None else WHOLE)
    matrix = config.split_matrix or [None] * len(Split)
    blend = None if config.blend is None else (config.blend[0], config.blend[1])
    return blend, matrix[split.value]


def _per_split(config: BlendedMegatronDatasetConfig) -> bool:
    return config.blend is None and not config.mock


def _plan_split(
    config: BlendedMegatronDatasetConfig,
    split: Split,
    blend: Blend,
    bookends: Bookends,
    size: int | None,
) -> SplitPlan:
    prefixes, weights = blend
    if weights is not None and size is None:
        raise ValueError(_no_size(config, split, weights))
    if len(prefixes) == 1 and (weights is None or _per_split(config)):
        return SplitPlan(split, "single", (Part(prefixes[0], split, bookends, size),))
    if split is Split.valid and config.multiple_validation_sets:
        parts = tuple(Part(prefix, split, bookends, size) for prefix in prefixes)
        return SplitPlan(split, "list", parts)
    if weights is None or size is None:
        parts = tuple(Part(prefix, split, bookends, None) for prefix in prefixes)
        return SplitPlan(split, "blend", parts, None, size)
    normalized = normalize(weights)
    targets = get_size_per_split_per_dataset(normalized, [size])
    built = get_size_per_split_per_dataset(normalized, [size], config.mid_level_dataset_surplus)
    parts = tuple(
        Part(prefix, split, bookends, samples)
        for prefix, (samples,) in zip(prefixes, built, strict=True)
    )
    total = sum(target for (target,) in targets)
    return SplitPlan(split, "blend", parts, tuple(normalized), total)


def _check_sizes(sizes: Sequence[int | None]) -> None:
    if len(sizes) != len(Split):
        raise ValueError(
            f"sizes: got {len(sizes)}, need {len(Split)}: samples of train, valid and test, such"
            " as [1000, 10, 0]; None for what one epoch gives"
        )
    for split in Split:
        size = sizes[split.value]
        if size is not None and size < 0:
            raise ValueError(
                f"sizes: {size} samples are asked of the {split.name} split; ask for 0 or more,"
                " or None for what one epoch gives"
            )


def _no_size(
    config: BlendedMegatronDatasetConfig, split: Split, weights: Sequence[int | float]
) -> str:
    full = split is Split.valid and config.full_validation
    shown = ", ".join(map(str, weights[:5])) + (", …" if len(weights) > 5 else "")
    return (
        f"the {split.name} split has weights ({shown}) but no size"
        + (", because full_validation takes one epoch of every file" if full else "")
        + ": weights are shares of a number of samples. Give None as weights to take one epoch of"
        + (" each, or full_validation=False" if full else " every file, or a size, such as 1000")
    )
