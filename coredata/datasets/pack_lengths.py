"""Lengths of samples of varying length, kept beside index arrays: packing plans follow from them.

Without them, packing has to read and tokenise rows before it can place them. They depend neither
on the room of a row nor on the packer, so that one pass over the rows serves every plan.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coredata._typing import Int64
from coredata.datasets.blended import BlendedDataset
from coredata.datasets.identity import describe
from coredata.datasets.index_cache import IndexCache
from coredata.datasets.npy import DamagedFileError
from coredata.datasets.rows_dataset import RowDataset
from coredata.datasets.varlen import VarlenDataset
from coredata.datasets.without_samples import WithoutSamples
from coredata.formats.row_bytes import version_of
from coredata.formats.row_source_hub import hub_files, is_hub_name
from coredata.storage import expand

Tell = Callable[[str], None]
"""Told how far a task is, in words."""

_NAME = "padded_lengths"
_BLOCK = 256


def tell_nobody(text: str) -> None:
    """A `Tell` that says nothing."""


def padded_lengths(dataset: Any, tell: Tell = tell_nobody) -> Int64[np.ndarray, " samples"] | None:
    """Padded lengths of all samples of a `VarlenDataset`, a blend of such, or part of one.

    Rows that repeat are tokenised once; with a cache directory, once for all runs.

    Args:
        dataset: what is packed.
        tell: told how many rows were tokenised.

    Returns:
        None if samples are something else, such as packs of conversations, whose segments a length
        does not tell.

    Raises:
        ValueError: a row makes no sample.
        IndexCacheError: the cache cannot be read or written.

    Warns:
        IndexCacheWarning: a damaged cache is built again.
    """
    return _lengths(dataset, tell) if single_samples(dataset) else None


def _lengths(dataset: Any, tell: Tell) -> Int64[np.ndarray, " samples"]:
    if isinstance(dataset, WithoutSamples):
        return _lengths(dataset.dataset, tell)[dataset.original(np.arange(len(dataset)))]
    if isinstance(dataset, BlendedDataset):
        found = np.zeros(len(dataset), np.int64)
        parts, samples = dataset.blend.lookup(np.arange(len(dataset)))
        for number, part in enumerate(dataset.datasets):
            here = np.flatnonzero(parts == number)
            if here.size:
                found[here] = _lengths(part, tell)[samples[here]]
        return found
    return cached_lengths(dataset, tell)


def cached_lengths(
    dataset: VarlenDataset, tell: Tell = tell_nobody
) -> Int64[np.ndarray, " samples"]:
    """Padded lengths of all samples of one dataset: from its cache, else read, and kept if it can.

    Raises:
        ValueError: a row makes no sample.
        IndexCacheError: the cache cannot be read or written.

    Warns:
        IndexCacheWarning: a damaged cache is built again.
    """
    rows = min(len(dataset), len(dataset.indices))
    cache = lengths_cache(dataset)

    def check(arrays: dict[str, np.ndarray], trusted: bool) -> None:
        found = arrays[_NAME]
        if found.shape != (rows,) or found.dtype != np.int64:
            raise DamagedFileError(
                f"{_NAME} is {found.dtype.name} of shape {found.shape}; there are {rows} rows"
            )

    arrays = None if cache is None else cache.load([_NAME], check)
    if arrays is None:
        arrays = {_NAME: _read(dataset, rows, tell)}
        if cache is not None:
            cache.store(arrays)
    return np.resize(arrays[_NAME], len(dataset))


def lengths_cache(dataset: VarlenDataset) -> IndexCache | None:
    """Where the lengths of a dataset are kept; None without a cache directory."""
    config = dataset.config
    if config.path_to_cache is None:
        return None
    identifiers = {
        "class": "PackLengths",
        "rows": min(len(dataset), len(dataset.indices)),
        "multiple": config.multiple,
        "files": file_versions(dataset),
        "dataset": {k: v for k, v in dataset.fingerprint().items() if k not in _OF_LENGTH},
    }
    return IndexCache(
        config.path_to_cache,
        describe(identifiers),
        "PackLengths",
        dataset.index_split.name,
        config.storage_options,
    )


_OF_LENGTH = ("num_samples", "samples")
"""What a fingerprint says about the length of a run; every row has its length once."""


def row_datasets(dataset: Any) -> Iterator[RowDataset]:
    """The datasets of rows that a dataset takes its samples from.

    Raises:
        TypeError: there are others among them; the text names the class.
    """
    if isinstance(dataset, WithoutSamples):
        yield from row_datasets(dataset.dataset)
    elif isinstance(dataset, BlendedDataset):
        for part in dataset.datasets:
            yield from row_datasets(part)
    elif isinstance(dataset, RowDataset):
        yield dataset
    else:
        raise TypeError(
            f"plans are kept for SFTDataset, VarlenDataset and blends of them, found "
            f"{type(dataset).__name__}, whose identity is not known. Give its lengths, or let "
            "rows be planned as they are needed"
        )


def single_samples(dataset: Any) -> bool:
    """Whether every sample is one segment, of the length that `VarlenDataset` knows."""
    return all(isinstance(part, VarlenDataset) for part in row_datasets(dataset))


def file_versions(dataset: RowDataset) -> list[str]:
    """What changes when the files of a dataset are written again."""
    path, options = dataset.dataset_path, dataset.config.storage_options
    if path is None:
        return []
    files = hub_files(path, options) if is_hub_name(path) else expand(path, options)
    return [version_of(file, options) for file in files]


def _read(dataset: VarlenDataset, rows: int, tell: Tell) -> Int64[np.ndarray, " rows"]:
    lengths = np.empty(rows, np.int64)
    for begin in range(0, rows, _BLOCK):
        numbers = np.arange(begin, min(begin + _BLOCK, rows), dtype=np.int64)
        dataset.prefetch(numbers)
        lengths[begin : begin + len(numbers)] = dataset.padded_lengths(numbers)
        tell(f"{begin + len(numbers):,} of {rows:,} rows tokenised")
    return lengths
