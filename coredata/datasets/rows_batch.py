"""Samples to a batch and back, where samples may differ in length."""

from collections.abc import Collection, Sequence

import numpy as np

from coredata.datasets.protocol import Batch, Sample


def stack_samples(samples: Sequence[Sample], ragged: Collection[str]) -> Batch:
    """Samples as a batch: field -> array whose first axis is the batch.

    Args:
        samples: at least one; all have the same fields.
        ragged: fields whose lengths differ from sample to sample. They become arrays of objects,
            of shape (B,), each element a sample's own array. The others are stacked.
    """
    batch: Batch = {}
    for field in samples[0]:
        if field in ragged:
            values = np.empty(len(samples), object)
            for row, sample in enumerate(samples):
                values[row] = sample[field]
            batch[field] = values
        else:
            batch[field] = np.stack([sample[field] for sample in samples])
    return batch


def unstack_samples(batch: Batch) -> list[Sample]:
    """The samples of a batch, as `coredata.varlen.pack_samples` takes them."""
    rows = len(next(iter(batch.values()))) if batch else 0
    return [{field: values[row] for field, values in batch.items()} for row in range(rows)]
