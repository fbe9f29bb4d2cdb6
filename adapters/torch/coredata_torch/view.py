"""A dataset as torch's DataLoader wants it: a batch is fetched at once, and not stacked again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch

from coredata.datasets.protocol import PADDING, Batch, Dataset, Sample
from coredata_torch.ragged import stack_samples
from coredata_torch.tensors import Tensors, as_tensors


@final
@dataclass(frozen=True, eq=False)
class FetchedBatch(Sequence[Sample]):
    """A batch that is already stacked, and looks like the list of its samples.

    torch's fetcher hands it on from `__getitems__` to the collate function. `collate` takes the
    fields as they are; any other function finds samples, as if it had been a list.
    """

    fields: Batch

    def __len__(self) -> int:
        """Number of samples."""
        return len(next(iter(self.fields.values()), ()))

    def __getitem__(self, index: Any) -> Any:
        """One sample: views of the batch."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of a batch of {len(self)}")
        return {name: array[index] for name, array in self.fields.items()}

    def __iter__(self) -> Iterator[Sample]:
        """The samples, one after the other."""
        return (self[index] for index in range(len(self)))


@final
class TorchDataset(torch.utils.data.Dataset[Tensors]):
    """A map-style dataset over one of coredata's, for any `DataLoader`.

    Give the loader `batch_sampler=TorchBatchSampler(...)` and `collate_fn=collate`: then a batch is
    one gather, and its tensors stand on the arrays it filled. (With torch's own collate function it
    works too, sample by sample.)

    Args:
        source: what to read, such as a `GPTDataset`; for samples of different lengths,
            `PaddedToLongest` around it.
    """

    def __init__(self, source: Dataset) -> None:
        self.source = source

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.source)

    def __getitem__(self, index: int | None) -> Tensors:
        """One sample; None, or -1, gives batch padding."""
        return as_tensors(self.source[None if index == PADDING else index])

    def __getitems__(self, indices: Any) -> FetchedBatch:
        """A batch; -1 gives batch padding."""
        return FetchedBatch(self.source.get_batch(np.asarray(indices, np.int64)))


def collate(samples: Sequence[Any]) -> Tensors:
    """What a `DataLoader` does with what it fetched: tensors, batch first.

    A batch of `TorchDataset` is only wrapped. A list of samples, as other datasets give it, is
    stacked; fields of different lengths are padded with zeros to the longest (`stack_samples`).
    """
    if isinstance(samples, FetchedBatch):
        return as_tensors(samples.fields)
    return as_tensors(stack_samples(samples))
