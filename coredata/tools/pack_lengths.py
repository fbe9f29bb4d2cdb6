"""Lengths of samples of varying length, kept beside index arrays: packing plans follow from them.

Without them, packing has to read and tokenise rows before it can place them. A plan itself is not
kept: from lengths it takes milliseconds, and it depends on the room of a row, the packer and the
number of ranks, on which the lengths do not depend.
"""

import numpy as np

from coredata._typing import Int64
from coredata.datasets import IndexCache, VarlenDataset
from coredata.datasets.identity import describe
from coredata.tools.output import progress

_NAME = "padded_lengths"
_BLOCK = 256


def cached_lengths(dataset: VarlenDataset) -> Int64[np.ndarray, " samples"]:
    """Padded lengths of all samples, from the dataset's cache, else read and kept there.

    What `coredata.varlen.PackWindows` and the packed loaders take as `lengths`. Rows that repeat
    are tokenised once.

    Raises:
        ValueError: the dataset has no cache directory, or a row makes no sample.
        IndexCacheError: the cache cannot be read or written.

    Warns:
        IndexCacheWarning: a damaged cache is built again.
    """
    cache = _cache(dataset)
    arrays = cache.load([_NAME])
    if arrays is None:
        arrays = {_NAME: _read(dataset)}
        cache.store(arrays)
    of_rows = arrays[_NAME]
    return np.resize(of_rows, len(dataset)).astype(np.int64)


def prepare_lengths(dataset: VarlenDataset) -> tuple[str, int]:
    """See that lengths are in the cache; whether that was a hit or they were built, and bytes."""
    state = "hit" if _cache(dataset).load([_NAME]) is not None else "built"
    return state, cached_lengths(dataset).nbytes


def _read(dataset: VarlenDataset) -> np.ndarray:
    """Lengths of as many samples as there are rows, or fewer samples."""
    count = min(len(dataset), len(dataset.indices))
    lengths = np.empty(count, np.int64)
    done = 0
    with progress(lambda: f"{done:,} of {count:,} samples tokenised"):
        for begin in range(0, count, _BLOCK):
            numbers = np.arange(begin, min(begin + _BLOCK, count), dtype=np.int64)
            lengths[begin : begin + len(numbers)] = dataset.padded_lengths(numbers)
            done = begin + len(numbers)
    return lengths


def _cache(dataset: VarlenDataset) -> IndexCache:
    config = dataset.config
    if config.path_to_cache is None:
        raise ValueError("lengths are kept in path_to_cache, but that is None; give a directory")
    identifiers = {
        "class": "PackLengths",
        "rows": min(len(dataset), len(dataset.indices)),
        "multiple": config.multiple,
        **dataset.fingerprint(),
    }
    return IndexCache(
        config.path_to_cache, describe(identifiers), "PackLengths", dataset.index_split.name
    )
