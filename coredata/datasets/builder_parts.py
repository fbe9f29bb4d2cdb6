"""Carrying out a plan: every file opened once, several of them at a time."""

import contextlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from coredata.datasets.builder_plan import Part
from coredata.datasets.config import BlendedMegatronDatasetConfig
from coredata.datasets.mid_level import MidLevelDatasetClass
from coredata.formats import prepared
from coredata.indices import split_range

_ROWS = (".jsonl", ".json", ".parquet", ".gz", ".zst")


class EmptySplitError(ValueError):
    """Samples are asked of a split that covers no part of its file."""


def build_parts(
    cls: MidLevelDatasetClass, parts: Sequence[Part], config: BlendedMegatronDatasetConfig
) -> dict[Part, Any]:
    """Build the dataset of every part.

    Files are opened once, whatever the number of their parts. With
    `num_dataset_builder_threads` above 1, so many files are worked on at once (kernels and file
    reads leave other threads running). Token files behind URLs are looked up, and their indices
    fetched, all at once before that.

    Raises:
        EmptySplitError: samples asked of a part without elements.
        Exception: whatever the dataset class raises; the first in the order of parts.
    """
    by_prefix: dict[str | None, list[Part]] = {}
    for part in dict.fromkeys(parts):
        by_prefix.setdefault(part.prefix, []).append(part)

    def build(of_file: list[Part]) -> list[Any]:
        return _build_file(cls, of_file, config)

    threads = min(config.num_dataset_builder_threads, len(by_prefix))
    with contextlib.ExitStack() as stack:
        stack.enter_context(prepared(_token_files(by_prefix), config.storage_options))
        if threads <= 1:
            built: Iterable[list[Any]] = map(build, by_prefix.values())
            return _by_part(by_prefix.values(), built)
        pool = ThreadPoolExecutor(threads, thread_name_prefix="coredata-build")
        stack.enter_context(pool)
        futures = [pool.submit(build, of_file) for of_file in by_prefix.values()]
        try:
            return _by_part(by_prefix.values(), (future.result() for future in futures))
        finally:
            pool.shutdown(cancel_futures=True)


def _token_files(prefixes: Iterable[str | None]) -> list[str]:
    """Those of the prefixes that may be of token files; files of rows have names with endings."""
    return [prefix for prefix in prefixes if prefix and not prefix.endswith(_ROWS)]


def _by_part(files: Iterable[list[Part]], built: Iterable[list[Any]]) -> dict[Part, Any]:
    return {
        part: dataset
        for of_file, datasets in zip(files, built, strict=True)
        for part, dataset in zip(of_file, datasets, strict=True)
    }


def _build_file(
    cls: MidLevelDatasetClass, parts: list[Part], config: BlendedMegatronDatasetConfig
) -> list[Any]:
    """The datasets of the parts of one file."""
    prefix = parts[0].prefix
    source = cls.build_low_level_dataset(prefix, config)
    elements = int(cls.numel_low_level_dataset(source))
    datasets = []
    for part in parts:
        begin, end = split_range(part.bookends, elements)
        if begin >= end and part.num_samples:
            raise EmptySplitError(_empty(part, begin, elements, config))
        dtype = np.int32 if elements < 2**31 else np.int64
        indices = np.arange(begin, end, dtype=dtype)
        datasets.append(cls(source, prefix, indices, part.num_samples, part.split, config))
    return datasets


def _empty(part: Part, at: int, elements: int, config: BlendedMegatronDatasetConfig) -> str:
    begin, end = part.bookends
    return (
        f"{part.num_samples} samples are asked of the {part.split.name} split of {part.prefix},"
        f" which is empty: {elements} elements, of which the shares {begin:.6g} to {end:.6g}"
        f" (split {config.split!r}) are those from {at} up to, not including, {at}. Give this"
        " split a larger share or the file more data, leave the file out of the blend, or ask"
        " for 0 samples"
    )
