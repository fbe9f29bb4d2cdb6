"""Whole global batches: the view of a framework with one program for all devices."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from coredata._typing import Int64
from coredata.sampling.checks import (
    check_batch_number,
    check_consumed,
    check_positive,
    take_whole_numbers,
)
from coredata.sampling.protocol import BatchSampler, Order
from coredata.sampling.ramp_up import BatchSizeRampUp
from coredata.sampling.sequential import padded, sequential_order


@dataclass(frozen=True)
class GlobalBatchSampler(BatchSampler):
    """The samples in order, once, a whole global batch at a time; who needs which rows takes them.

    The last, short batch is dropped, or with `drop_last` False filled up with `PADDING` (-1), so
    that its shape stays the same. Padding is not counted as consumed.

    `global_batch_size` is a number, or a ramp-up, whose place is found without walking the steps.
    """

    cyclic: ClassVar[bool] = False

    total_samples: int
    consumed_samples: int
    global_batch_size: int | BatchSizeRampUp
    drop_last: bool = True

    def __post_init__(self) -> None:
        take_whole_numbers(self, "total_samples", "consumed_samples")
        if not isinstance(self.global_batch_size, BatchSizeRampUp):
            take_whole_numbers(self, "global_batch_size")
            check_positive(global_batch_size=self.global_batch_size)
        check_consumed(self.consumed_samples, self.total_samples)

    @property
    def _sizes(self) -> BatchSizeRampUp:
        size = self.global_batch_size
        if isinstance(size, BatchSizeRampUp):
            return size
        return BatchSizeRampUp(size, size, 0, size)

    def __len__(self) -> int:
        whole = self._sizes.steps_until(self.total_samples, self.consumed_samples)
        if self.drop_last:
            return whole
        end = self._sizes.consumed_after(whole, self.consumed_samples)
        return whole + (end < self.total_samples)

    def batches(self, start: int = 0) -> Iterator[Int64[np.ndarray, " batch"]]:
        """The batches of this rank from batch `start` on; see `BatchSampler`."""
        check_batch_number(start, len(self), "start")
        return self._batches(start)

    def _batches(self, start: int) -> Iterator[Int64[np.ndarray, " batch"]]:
        sizes = self._sizes
        first = sizes.consumed_after(start, self.consumed_samples)
        for _ in range(start, len(self)):
            size = sizes.batch_size(first)
            yield padded(first, size, self.total_samples)
            first += size

    def consumed_after(self, batches: int) -> int:
        """Samples consumed after this many batches from here; see `BatchSampler`."""
        check_batch_number(batches, len(self), "batches")
        consumed = self._sizes.consumed_after(batches, self.consumed_samples)
        return min(consumed, self.total_samples)

    def resume(self, consumed_samples: int) -> "GlobalBatchSampler":
        """The same sampler from another place; see `BatchSampler`."""
        return replace(self, consumed_samples=consumed_samples)

    def order(self) -> Order:
        """What the order depends on; see `BatchSampler`."""
        return sequential_order(self.total_samples)
