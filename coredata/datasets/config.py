"""What every dataset is built from: seeds, lengths, blends, splits, caches."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from coredata.indices import (
    Split,
    convert_split_vector_to_split_matrix,
    parse_and_normalize_split,
)
from coredata.sampling.checks import take_whole_numbers, whole_number

LARGEST_SEED = 2**32 - 1
"""The Mersenne Twister is seeded with 32 bits."""

_NUMBERS = ("random_seed", "sequence_length", "num_dataset_builder_threads")


@dataclass(frozen=True)
class BlendedMegatronDatasetConfig:
    """Settings that all datasets share. Fields carry the reference's names and defaults.

    The configuration validates itself. It is a value: change it with `dataclasses.replace`.

    Raises:
        ValueError: a field out of range, or two fields that exclude each other; the text names
            the field, what was given, and what would work.
        TypeError: a number that is not a number.
    """

    random_seed: int
    """Seed of every random number, 0 … 2³² − 1."""

    sequence_length: int
    """Tokens in a sample."""

    blend: Sequence[Any] | None = None
    """Prefixes and their weights, `(["a", "b"], [0.3, 0.7])`, or `(["a", "b"], None)` to weight
    each by its length. Needs `split`. Excludes `blend_per_split`."""

    blend_per_split: Sequence[Any] | None = None
    """A blend as above, or None, for each of train, valid and test; files are used whole."""

    multiple_validation_sets: bool | None = None
    """Whether the validation split is a list with one dataset for each prefix."""

    full_validation: bool | None = None
    """Whether a validation dataset is one epoch of its files, whatever size is asked."""

    split: str | None = None
    """Shares of train, valid and test, such as "969, 30, 1". Set to "1,1,1" for mock data."""

    split_matrix: list[Any] | None = field(init=False, default=None)
    """(begin, end) of each split as shares of a file, None for an empty one. Computed."""

    num_dataset_builder_threads: int = 1
    """Datasets of a blend built at the same time."""

    path_to_cache: str | None = None
    """Directory for index arrays. None: build them in memory and write nothing."""

    mmap_bin_files: bool = True
    """Map token files (True), or read them by position (False).

    A mapped file that another program makes shorter meanwhile ends the process with a bus error;
    read by position it raises an error: choose False where that can happen."""

    mock: bool = field(init=False, default=False)
    """Whether data are made up, because no blend is given. Computed."""

    tokenizer: Any = None
    """What knows end, pad and vocabulary size; its `unique_identifiers` go into cache keys."""

    mid_level_dataset_surplus: int | float = 0.005
    """Share of samples built for each dataset of a blend beyond its part of the request."""

    allow_ambiguous_pad_tokens: bool | None = False
    """Keep a pad id that is also another special id (end of document, say). Every such token is
    then taken for padding and bears no loss."""

    fast_cache_load: bool = False
    """Trust that caches are complete: no checks, and no order among processes."""

    defer_npy_index_mmap: bool = False
    """Do not open index arrays before the first sample is read. Needs `path_to_cache`."""

    storage_options: Mapping[str, Any] | None = None
    """Options for the fsspec file system of prefixes that are URLs. Not in the reference."""

    def __post_init__(self) -> None:
        """Check all fields and compute `split`, `split_matrix` and `mock`."""
        take_whole_numbers(self, *_NUMBERS)
        check_whole_number("random_seed", self.random_seed, 0, LARGEST_SEED)
        check_whole_number("sequence_length", self.sequence_length, 1)
        check_whole_number("num_dataset_builder_threads", self.num_dataset_builder_threads, 1)
        surplus = self.mid_level_dataset_surplus
        if not (math.isfinite(surplus) and surplus >= 0):
            raise ValueError(
                f"mid_level_dataset_surplus: got {surplus!r}, need a share of at least 0, "
                "such as 0.005"
            )
        for name in ("fast_cache_load", "defer_npy_index_mmap"):
            if getattr(self, name) and self.path_to_cache is None:
                raise ValueError(
                    f"{name}: it is on, but path_to_cache is None. Set path_to_cache to the "
                    f"directory of a finished cache, or {name}=False"
                )
        if self.blend_per_split is not None and any(self.blend_per_split):
            self._check_blend_per_split(self.blend_per_split)
        else:
            self._compute_split()

    def _check_blend_per_split(self, blends: Sequence[Any]) -> None:
        for name in ("blend", "split"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name}: got {getattr(self, name)!r} together with blend_per_split. Give "
                    f"either blend_per_split alone, or blend and split"
                )
        if len(blends) != len(Split):
            raise ValueError(
                f"blend_per_split: got {len(blends)} blends, need {len(Split)}: one for each of "
                "train, valid and test, None where there is none"
            )
        for split, blend in zip(Split, blends, strict=True):
            if blend is not None:
                check_blend(f"blend_per_split[{split.value}] ({split.name})", blend)

    def _compute_split(self) -> None:
        if self.blend is None:
            object.__setattr__(self, "mock", True)
            object.__setattr__(self, "split", "1,1,1")
        else:
            check_blend("blend", self.blend)
        if self.split is None:
            raise ValueError(
                'split: got None together with blend. Give the shares, such as split="969,30,1"; '
                'split="1,0,0" takes every file whole for training'
            )
        matrix = convert_split_vector_to_split_matrix(parse_and_normalize_split(self.split))
        object.__setattr__(self, "split_matrix", matrix)


def check_whole_number(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Refuse a field that is not an integer from `least` to `most`.

    Raises:
        TypeError: not an integer.
        ValueError: out of range.
    """
    value = whole_number(name, value, least)
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"{least} to {most}"
        raise ValueError(f"{name}: got {value}, need {bounds}")


def check_blend(name: str, blend: Any) -> None:
    """Refuse what is not `(prefixes, weights)` or `(prefixes, None)`.

    Raises:
        ValueError: another shape, counts that differ, or weights that cannot be normalised.
    """
    if isinstance(blend, str | bytes) or not isinstance(blend, Sequence) or len(blend) != 2:
        raise ValueError(
            f'{name}: got {blend!r}, need (prefixes, weights), such as (["a", "b"], [0.3, 0.7]), '
            'or (["a", "b"], None); get_blend_from_list makes one from a flat list'
        )
    prefixes, weights = blend
    if isinstance(prefixes, str | bytes) or len(prefixes) == 0:
        raise ValueError(f'{name}: got prefixes {prefixes!r}, need a list of them, such as ["a"]')
    if weights is None:
        return
    if len(weights) != len(prefixes):
        raise ValueError(
            f"{name}: got {len(prefixes)} prefixes and {len(weights)} weights; give a weight for "
            "each prefix, or None to weight them by their lengths"
        )
    for prefix, weight in zip(prefixes, weights, strict=True):
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(
                f"{name}: got weight {weight!r} for {prefix}, need a finite number of at least 0"
            )
    if not any(weights):
        raise ValueError(f"{name}: all {len(weights)} weights are 0; at least one must be above 0")
