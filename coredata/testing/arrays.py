"""A dataset over arrays in memory, for tests of what stands on datasets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Shaped
from coredata.datasets.protocol import PADDING, Batch, Sample


@dataclass(frozen=True)
class ArrayDataset:
    """Row k of each array is sample k. Meets the `Dataset` protocol; picklable."""

    fields: Mapping[str, np.ndarray]
    """Field name -> array whose first axis is the samples."""

    name: str = "arrays"
    """Goes into the fingerprint, to tell one dataset from another."""

    def __post_init__(self) -> None:
        """Check that the arrays have one length.

        Raises:
            ValueError: there is no array, or they differ in their first axis.
        """
        lengths = {name: len(array) for name, array in self.fields.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"an ArrayDataset needs arrays of one length, one row a sample; got {lengths}"
            )

    def __len__(self) -> int:
        """Number of samples."""
        return len(next(iter(self.fields.values())))

    def __getitem__(self, index: int | None) -> Sample:
        """Sample `index`; None gives batch padding."""
        batch = self.get_batch(np.array([PADDING if index is None else index]))
        return {name: array[0] for name, array in batch.items()}

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples at once."""
        return [self[index] for index in indices]

    def get_batch(self, indices: Shaped[np.ndarray, " batch"]) -> Batch:
        """Samples stacked; where `PADDING` is asked for, sample 0 with a loss mask of zeros.

        Raises:
            IndexError: a sample that does not exist.
        """
        padding = indices == PADDING
        if len(indices) and (indices.min() < PADDING or indices.max() >= len(self)):
            wrong = indices[(indices < PADDING) | (indices >= len(self))][0]
            raise IndexError(f"sample {wrong} of {len(self)} (0 to {len(self) - 1})")
        rows = np.where(padding, 0, indices)
        batch = {name: array[rows] for name, array in self.fields.items()}
        if "loss_mask" in batch:
            batch["loss_mask"][padding] = 0
        return batch

    def fingerprint(self) -> Mapping[str, Any]:
        """Name, number of samples and fields."""
        return {"name": self.name, "samples": len(self), "fields": sorted(self.fields)}


def numbered_dataset(samples: int, sequence_length: int = 4, name: str = "numbers") -> ArrayDataset:
    """A dataset in which every value tells where it comes from.

    Token i of sample k is `k * sequence_length + i`, labels are one more, all loss counts.
    """
    tokens = np.arange(samples * sequence_length, dtype=np.int64).reshape(samples, sequence_length)
    return ArrayDataset(
        {
            "tokens": tokens,
            "labels": tokens + 1,
            "loss_mask": np.ones(tokens.shape, np.float32),
            "position_ids": np.broadcast_to(np.arange(sequence_length), tokens.shape),
        },
        name,
    )
