"""A blend: from a sample's number to the dataset that gives it, and its number there."""

from typing import Protocol, runtime_checkable

import numpy as np

from coredata._typing import Int64, Integer

_BLOCK = 1 << 20


@runtime_checkable
class Blend(Protocol):
    """Which dataset gives which sample. How it knows is its own affair."""

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def lookup(
        self, samples: Int64[np.ndarray, " batch"]
    ) -> tuple[Int64[np.ndarray, " batch"], Int64[np.ndarray, " batch"]]:
        """The dataset of each of `samples`, and the sample's number in that dataset.

        Raises:
            IndexError: a number outside 0 … len − 1.
        """
        ...

    def counts(self) -> Int64[np.ndarray, " datasets"]:
        """How many samples are drawn from each dataset."""
        ...


class IndexedBlend:
    """A blend kept as two arrays, which may be mapped from a file."""

    def __init__(
        self,
        dataset_index: Integer[np.ndarray, " samples"],
        dataset_sample_index: Integer[np.ndarray, " samples"],
        datasets: int,
    ) -> None:
        self._dataset_index = dataset_index
        self._dataset_sample_index = dataset_sample_index
        self._datasets = datasets

    def __len__(self) -> int:
        return len(self._dataset_index)

    def lookup(
        self, samples: Int64[np.ndarray, " batch"]
    ) -> tuple[Int64[np.ndarray, " batch"], Int64[np.ndarray, " batch"]]:
        """See `Blend.lookup`."""
        outside = (samples < 0) | (samples >= len(self))
        if outside.any():
            raise IndexError(
                f"sample {samples[outside][0]} of a blend of {len(self)}; samples are numbered"
                f" 0 to {len(self) - 1}"
            )
        return (
            np.asarray(self._dataset_index[samples], dtype=np.int64),
            np.asarray(self._dataset_sample_index[samples], dtype=np.int64),
        )

    def counts(self) -> Int64[np.ndarray, " datasets"]:
        """See `Blend.counts`. Reads the index once, a block at a time."""
        counts = np.zeros(self._datasets, dtype=np.int64)
        for start in range(0, len(self), _BLOCK):
            block = self._dataset_index[start : start + _BLOCK]
            counts += np.bincount(block, minlength=self._datasets)
        return counts
