"""Every sample of a validation set once, one at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from coredata._typing import Int64
from coredata.sampling.checks import (
    check_batch_number,
    check_consumed,
    check_rank,
    take_whole_numbers,
)
from coredata.sampling.protocol import BatchSampler, Order
from coredata.sampling.sequential import sequential_order

_NUMBERS = ("total_samples", "data_parallel_rank", "data_parallel_size", "consumed_samples")


@dataclass(frozen=True)
class MegatronFullValidationSampler(BatchSampler):
    """Batches of one sample: block b gives rank r sample b x data_parallel_size + r.

    Ranks without a sample in the last block run one step less than the others: reduce losses
    by counts, or use `PaddedPretrainingSampler`, which keeps ranks in step.
    """

    cyclic: ClassVar[bool] = False

    total_samples: int
    data_parallel_rank: int
    data_parallel_size: int
    consumed_samples: int = 0

    def __post_init__(self) -> None:
        take_whole_numbers(self, *_NUMBERS)
        check_rank(self.data_parallel_rank, self.data_parallel_size)
        check_consumed(self.consumed_samples, self.total_samples)

    def __len__(self) -> int:
        return len(self._samples())

    def _samples(self) -> range:
        first = self.consumed_samples + self.data_parallel_rank
        return range(first, self.total_samples, self.data_parallel_size)

    def batches(self, start: int = 0) -> Iterator[Int64[np.ndarray, " batch"]]:
        """The batches of this rank from batch `start` on; see `BatchSampler`."""
        check_batch_number(start, len(self), "start")
        return (np.array([sample], np.int64) for sample in self._samples()[start:])

    def consumed_after(self, batches: int) -> int:
        """Samples consumed after this many batches from here; see `BatchSampler`."""
        left = self.total_samples - self.consumed_samples
        check_batch_number(batches, -(-left // self.data_parallel_size), "batches")
        return min(self.consumed_samples + batches * self.data_parallel_size, self.total_samples)

    def resume(self, consumed_samples: int) -> "MegatronFullValidationSampler":
        """The same sampler from another place; see `BatchSampler`."""
        return replace(self, consumed_samples=consumed_samples)

    def order(self) -> Order:
        """What the order depends on; see `BatchSampler`."""
        return sequential_order(self.total_samples)
