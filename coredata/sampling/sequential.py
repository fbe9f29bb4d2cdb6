"""Samples in order, once: each block of micro_batch_size x data_parallel_size is cut by rank."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from coredata._typing import Int64
from coredata.sampling.checks import (
    check_batch_number,
    check_consumed,
    check_global_batch,
    check_positive,
    check_rank,
    take_whole_numbers,
)
from coredata.sampling.protocol import PADDING, BatchSampler, Order

_PARTS = ("micro_batch_size", "data_parallel_rank", "data_parallel_size")


class SequentialSampler(BatchSampler):
    """The samples in order, once, in blocks that the ranks share; abstract.

    A subclass says how large a block is and what its rank takes of one.
    """

    cyclic: ClassVar[bool] = False

    micro_batch_size: int
    data_parallel_rank: int
    data_parallel_size: int
    drop_last: bool

    def __post_init__(self) -> None:
        take_whole_numbers(self, "total_samples", "consumed_samples", *_PARTS)
        check_positive(micro_batch_size=self.micro_batch_size)
        check_rank(self.data_parallel_rank, self.data_parallel_size)
        check_consumed(self.consumed_samples, self.total_samples)

    @property
    def block(self) -> int:
        """Samples that all ranks together take at once."""
        return self.micro_batch_size * self.data_parallel_size

    @abstractmethod
    def take(self, block_start: int) -> Int64[np.ndarray, " batch"]:
        """What this rank takes of the block that starts with this sample."""

    def __len__(self) -> int:
        left = self.total_samples - self.consumed_samples
        return left // self.block if self.drop_last else -(-left // self.block)

    def batches(self, start: int = 0) -> Iterator[Int64[np.ndarray, " batch"]]:
        """The batches of this rank from batch `start` on; see `BatchSampler`."""
        check_batch_number(start, len(self), "start")
        blocks = range(start, len(self))
        return (self.take(self.consumed_samples + k * self.block) for k in blocks)

    def consumed_after(self, batches: int) -> int:
        """Samples consumed after this many batches from here; see `BatchSampler`."""
        check_batch_number(batches, len(self), "batches")
        return min(self.consumed_samples + batches * self.block, self.total_samples)

    def order(self) -> Order:
        """What the order depends on; see `BatchSampler`."""
        return sequential_order(self.total_samples)


@dataclass(frozen=True)
class MegatronPretrainingSampler(SequentialSampler):
    """Megatron-LM's "single" sampler: the samples in order, once.

    Rank r takes the r-th micro batch of each block. The last, short block is dropped, or with
    `drop_last` False cut in the same way: some ranks get fewer samples, or an empty batch.
    """

    total_samples: int
    consumed_samples: int
    micro_batch_size: int
    data_parallel_rank: int
    data_parallel_size: int
    drop_last: bool = True

    def take(self, block_start: int) -> Int64[np.ndarray, " batch"]:
        """This rank's micro batch of a block."""
        first = block_start + self.data_parallel_rank * self.micro_batch_size
        end = min(first + self.micro_batch_size, self.total_samples)
        return np.arange(first, max(first, end), dtype=np.int64)

    def resume(self, consumed_samples: int) -> "MegatronPretrainingSampler":
        """The same sampler from another place; see `BatchSampler`."""
        return replace(self, consumed_samples=consumed_samples)


@dataclass(frozen=True)
class PaddedPretrainingSampler(SequentialSampler):
    """The samples in order, once, none dropped and every batch full.

    The last block is filled up with `PADDING` (-1), for which a dataset gives a sample without
    loss: every rank runs the same number of steps on the same shapes. Padding is not counted as
    consumed.
    """

    drop_last: ClassVar[bool] = False  # type: ignore[misc]

    total_samples: int
    consumed_samples: int
    micro_batch_size: int
    data_parallel_rank: int
    data_parallel_size: int

    def take(self, block_start: int) -> Int64[np.ndarray, " batch"]:
        """This rank's micro batch of a block, padded."""
        first = block_start + self.data_parallel_rank * self.micro_batch_size
        return padded(first, self.micro_batch_size, self.total_samples)

    def resume(self, consumed_samples: int) -> "PaddedPretrainingSampler":
        """The same sampler from another place; see `BatchSampler`."""
        return replace(self, consumed_samples=consumed_samples)


@dataclass(frozen=True)
class HybridCPMegatronPretrainingSampler(SequentialSampler):
    """The samples in order, once; each batch is all that a rank takes of one global batch.

    A block is a global batch; rank r takes from it what `MegatronPretrainingSampler` would give
    it in several micro batches. `drop_last` is as there.
    """

    total_samples: int
    consumed_samples: int
    micro_batch_size: int
    global_batch_size: int
    data_parallel_rank: int
    data_parallel_size: int
    drop_last: bool = True

    def __post_init__(self) -> None:
        take_whole_numbers(self, "global_batch_size")
        super().__post_init__()
        check_global_batch(self.global_batch_size, self.micro_batch_size, self.data_parallel_size)

    @property
    def block(self) -> int:
        """Samples that all ranks together take at once: a global batch."""
        return self.global_batch_size

    def take(self, block_start: int) -> Int64[np.ndarray, " batch"]:
        """All of this rank's micro batches of a global batch, one after the other."""
        samples = np.arange(block_start, block_start + self.global_batch_size, dtype=np.int64)
        by_rank = samples.reshape(-1, self.data_parallel_size, self.micro_batch_size)
        ours = by_rank[:, self.data_parallel_rank].reshape(-1)
        return ours[ours < self.total_samples]

    def resume(self, consumed_samples: int) -> "HybridCPMegatronPretrainingSampler":
        """The same sampler from another place; see `BatchSampler`."""
        return replace(self, consumed_samples=consumed_samples)


def sequential_order(total_samples: int) -> Order:
    """The order 0, 1, 2, …"""
    return {"order": "sequential", "total_samples": total_samples}


def padded(first: int, count: int, total: int) -> Int64[np.ndarray, " batch"]:
    """Samples `first` … `first + count - 1`, `PADDING` in place of those from `total` on."""
    samples = np.arange(first, first + count, dtype=np.int64)
    samples[samples >= total] = PADDING
    return samples
