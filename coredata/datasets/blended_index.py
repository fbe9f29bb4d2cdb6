"""The two index arrays behind a blended dataset: built, checked, cached, small when pickled."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int64
from coredata.blending import (
    IndexedBlend,
    build_blending_indices,
    build_exhaustive_blending_indices,
    normalize,
)
from coredata.datasets.index_cache import Arrays, IndexCache
from coredata.datasets.npy import DamagedFileError
from coredata.storage import local_path

NAMES = ("dataset_index", "dataset_sample_index")


def build_index(weights: Sequence[int | float], size: int | None) -> Arrays:
    """The index arrays for `size` samples drawn by `weights`, or for all samples if it is None.

    A dataset of weight 0 is never drawn. (By the greedy rule alone it might be, where all others
    are exactly on their shares.)
    """
    values = np.array(weights, dtype=np.float64)
    drawn = np.flatnonzero(values > 0)
    if size is None:
        arrays = build_exhaustive_blending_indices(weights)
    elif len(drawn) == len(values):
        arrays = build_blending_indices(weights, size)
    elif size == 0:
        arrays = build_exhaustive_blending_indices([0] * len(values))
    else:
        index, samples = build_blending_indices(normalize(values[drawn].tolist()), size)
        wide = np.int16 if len(values) <= np.iinfo(np.int16).max else np.int32
        arrays = (drawn.astype(wide)[index], samples)
    return dict(zip(NAMES, arrays, strict=True))


class BlendedIndex:
    """Keeps the index arrays of one blend, and knows where to get them again.

    Pickled, it carries the place of a finished cache; only arrays that are in no cache travel.

    Args:
        weights: see `build_index`.
        size: see `build_index`.
        cache: where the arrays are kept, or None.
        trusted: whether the cache is known to be finished, so that it need not be checked.
    """

    def __init__(
        self,
        weights: Sequence[int | float],
        size: int | None,
        cache: IndexCache | None,
        trusted: bool,
    ) -> None:
        self._weights = weights
        self._size = size
        self._cache = cache
        self._trusted = trusted
        self._finished = False
        self._arrays: Arrays | None = None

    def __len__(self) -> int:
        """Samples of the blend; needs no arrays."""
        return int(sum(self._weights)) if self._size is None else self._size

    def open(self, check: Callable[[Int64[np.ndarray, " datasets"]], None]) -> IndexedBlend:
        """The blend, from the arrays at hand, those of the cache, or new ones (which are stored).

        Args:
            check: given how often each dataset is drawn, may object. Not called for a trusted
                cache.

        Raises:
            IndexCacheError: the cache cannot be read or written.
            FileNotFoundError: a trusted cache lacks a file.

        Warns:
            IndexCacheWarning: a damaged cache is built again.
        """
        if self._arrays is None:
            self._arrays = self._open(check)
        return self._blend(self._arrays)

    @property
    def arrays(self) -> Arrays | None:
        """The arrays by name, if they were opened already."""
        return self._arrays

    def _open(self, check: Callable[[Int64[np.ndarray, " datasets"]], None]) -> Arrays:
        cache = self._cache
        if cache is not None and (self._trusted or (self._finished and cache.complete())):
            self._finished = True
            return cache.load_unchecked(NAMES)
        arrays = None if cache is None else cache.load(NAMES, self._check_cached)
        if arrays is not None:
            check(self._blend(arrays).counts())
            self._finished = True
            return arrays
        arrays = build_index(self._weights, self._size)
        check(self._blend(arrays).counts())
        if cache is None:
            return arrays
        cache.store(arrays)
        self._finished = True
        if local_path(cache.directory) is None:
            return arrays
        return cache.load_unchecked(NAMES)  # mapped: shared with other processes

    def _blend(self, arrays: Arrays) -> IndexedBlend:
        return IndexedBlend(
            arrays["dataset_index"], arrays["dataset_sample_index"], len(self._weights)
        )

    def _check_cached(self, arrays: Arrays, trusted: bool) -> None:
        for name, array in arrays.items():
            if array.shape != (len(self),) or array.dtype.kind not in "iu":
                raise DamagedFileError(
                    f"{name} is {array.dtype.name} of shape {array.shape}; this blend has"
                    f" integers of shape {(len(self),)}"
                )
        if not trusted:
            at = first_bad_entry(*arrays.values(), np.zeros(len(self._weights), np.int64))
            if at >= 0:
                raise DamagedFileError(
                    f"entry {at} is sample {arrays['dataset_sample_index'][at]} of dataset"
                    f" {arrays['dataset_index'][at]}, which is not the next sample of one of"
                    f" {len(self._weights)} datasets"
                )

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._finished:
            state["_arrays"] = None
        return state


@kernel
def first_bad_entry(dataset_index, dataset_sample_index, drawn):
    """The first entry that is not its dataset's next sample; -1 if there is none.

    `drawn` holds a zero for each dataset, and counts.
    """
    for t in range(len(dataset_index)):
        dataset = np.int64(dataset_index[t])
        if dataset < 0 or dataset >= len(drawn) or dataset_sample_index[t] != drawn[dataset]:
            return np.int64(t)
        drawn[dataset] += 1
    return np.int64(-1)
