"""What this process reads of every global batch: its rows, and of these its columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from coredata._typing import Int64, Shaped
from coredata.datasets.protocol import Batch, Dataset, LooksAhead, Sample
from coredata.sampling import BatchSampler, Order
from coredata_jax.layout import BatchLayout
from coredata_jax.sequence_order import load_balanced_order


@final
class LocalRows(BatchSampler):
    """The rows that this process needs of each global batch, in rising order, each once."""

    cyclic: ClassVar[bool] = False

    def __init__(self, whole: BatchSampler, layout: BatchLayout) -> None:
        self.whole = whole
        self.layout = layout
        self.total_samples = whole.total_samples
        self.consumed_samples = whole.consumed_samples

    def __len__(self) -> int:
        return len(self.whole)

    def batches(self, start: int = 0) -> Iterator[Int64[np.ndarray, " batch"]]:
        """The rows of this process from batch `start` on; see `BatchSampler`."""
        for batch in self.whole.batches(start):
            yield batch[self.layout.local_rows(len(batch))]

    def consumed_after(self, batches: int) -> int:
        """Samples that all processes together consume; see `BatchSampler`."""
        return self.whole.consumed_after(batches)

    def resume(self, consumed_samples: int) -> "LocalRows":
        """The same sampler from another place; see `BatchSampler`."""
        return LocalRows(self.whole.resume(consumed_samples), self.layout)

    def order(self) -> Order:
        """That of the whole: which process reads what does not matter."""
        return self.whole.order()


@final
@dataclass(frozen=True)
class LocalColumns:
    """A dataset whose batches hold the columns that this process needs, in the order of devices.

    64-bit integers become `integer_dtype`. It runs in the threads that read.
    """

    source: Dataset
    layout: BatchLayout
    sequence_fields: tuple[str, ...]
    load_balanced: bool
    integer_dtype: np.dtype

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.source)

    def __getitem__(self, index: int | None) -> Sample:
        """A whole sample."""
        return self.source[index]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Whole samples."""
        return self.source.__getitems__(indices)

    def fingerprint(self) -> Mapping[str, Any]:
        """That of the source."""
        return self.source.fingerprint()

    def prefetch(self, indices: Shaped[np.ndarray, " samples"]) -> None:
        """Tell the source, if that is of use to it; see `LooksAhead`."""
        if isinstance(self.source, LooksAhead):
            self.source.prefetch(indices)

    def get_batch(self, indices: Shaped[np.ndarray, " batch"]) -> Batch:
        """Samples stacked, of each the columns of this process.

        Raises:
            ValueError: a sequence that its axis does not divide, fields of the sequence whose
                lengths differ or of which there are none, or a dense mask in balanced order.
            TypeError: a field that no device can hold.
            OverflowError: an integer that `integer_dtype` cannot hold.
        """
        batch = self.source.get_batch(indices)
        columns = self._columns(batch)
        kept = {}
        for name, array in batch.items():
            if columns is not None and name in self.sequence_fields:
                array = array[:, columns]
            kept[name] = _narrowed(name, array, self.integer_dtype)
        return kept

    def _columns(self, batch: Batch) -> Int64[np.ndarray, " local"] | None:
        """Which columns to keep; None for all as they are."""
        parts = self.layout.column_shards
        if parts == 1:
            return None
        for name in self.sequence_fields:
            if name in batch and batch[name].ndim < 2:
                varying = batch[name].dtype == object
                raise ValueError(
                    f"sequence_fields: {name} of shape {batch[name].shape} has no second axis to "
                    f"split over {self.layout.sequence_axis!r}"
                    + (
                        ": its samples differ in length. Pack them with PackedBatches, or give "
                        "samples of one length"
                        if varying
                        else ". Name those whose second axis is the sequence"
                    )
                )
        lengths = {name: batch[name].shape[1] for name in self.sequence_fields if name in batch}
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"sequence_fields: they need one length to be split over the axis "
                f"{self.layout.sequence_axis!r}; found {lengths or 'none of them'} among the "
                f"fields {sorted(batch)}. Name those whose second axis is the sequence"
            )
        length = next(iter(lengths.values()))
        step = 2 * parts if self.load_balanced else parts
        if length % step:
            fits = max(round(length / step), 1) * step
            balanced = " (twice its size, for the balanced order)" if self.load_balanced else ""
            raise ValueError(
                f"sequence_axis: axis {self.layout.sequence_axis!r} of size {parts} cannot share "
                f"sequences of {length} tokens; it takes a multiple of {step}{balanced}. "
                f"A sequence_length of {fits} would work"
            )
        columns = self.layout.local_columns(length)
        if not self.load_balanced:
            return None if len(columns) == length else columns
        if "attention_mask" in batch:
            raise ValueError(
                "load_balanced: a dense attention_mask is in the order of the text. Leave it out "
                "(create_attention_mask=False) and mask by position_ids and segment_ids"
            )
        return load_balanced_order(length, parts).positions[columns]


def _narrowed(name: str, array: np.ndarray, integer_dtype: np.dtype) -> np.ndarray:
    """The array with 64-bit integers as `integer_dtype`."""
    if array.dtype == object:
        raise TypeError(
            f"field {name} has samples of different lengths, which make no batch of one shape; "
            "pack them with PackedBatches, or give samples of one length"
        )
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"field {name} has the type {array.dtype}, which no device holds; leave the field out "
            "of the batch, or turn it into numbers"
        )
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8:
        return array
    narrow = array.astype(integer_dtype, copy=False)
    if not np.array_equal(narrow, array):
        raise OverflowError(
            f"field {name} has values from {array.min()} to {array.max()}, which {integer_dtype} "
            'cannot hold. Turn jax_enable_x64 on and give integer_dtype="int64"'
        )
    return narrow
