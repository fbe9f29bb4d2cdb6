"""Samples in random order, epoch after epoch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from coredata._typing import Int64
from coredata.sampling.checks import (
    check_batch_number,
    check_positive,
    check_rank,
    take_whole_numbers,
)
from coredata.sampling.protocol import BatchSampler, Order
from coredata.sampling.randperm import torch_randperm

_PARTS = ("micro_batch_size", "data_parallel_rank", "data_parallel_size")


@dataclass(frozen=True)
class MegatronPretrainingRandomSampler(BatchSampler):
    """Megatron-LM's "cyclic" sampler: PyTorch's permutation of the samples, another each epoch.

    One iteration goes to the end of an epoch; the next epoch is
    `resume(consumed_after(len(self)))`. An epoch is as many whole steps as there are samples for;
    the samples that are left over are other ones in each epoch (with `data_sharding`, always the
    last). Every rank runs the same number of steps. (In Megatron-LM, without `data_sharding`,
    some ranks may run one step more where total_samples is not a multiple of a step.)

    With `data_sharding` a rank keeps to its own stretch of the dataset; the order then depends on
    the number of ranks. Without, the order depends on them only through the length of an epoch:
    where total_samples is a multiple of both old and new step, a run resumes exactly on another
    number of ranks, if `consumed_samples` is a multiple of the new step. `order()` tells.

    The permutation of the epoch (8 bytes per sample) is computed when an iteration starts.
    """

    cyclic: ClassVar[bool] = True

    total_samples: int
    consumed_samples: int
    micro_batch_size: int
    data_parallel_rank: int
    data_parallel_size: int
    data_sharding: bool

    def __post_init__(self) -> None:
        take_whole_numbers(self, "total_samples", "consumed_samples", *_PARTS)
        check_positive(micro_batch_size=self.micro_batch_size)
        check_rank(self.data_parallel_rank, self.data_parallel_size)
        if self.total_samples < self.block:
            raise ValueError(
                f"total_samples: {self.total_samples} samples are not enough for one step of "
                f"micro_batch_size x data_parallel_size = {self.micro_batch_size} x "
                f"{self.data_parallel_size} = {self.block}. Take smaller batches or fewer ranks"
            )
        if self.consumed_samples < 0:
            raise ValueError(f"consumed_samples: {self.consumed_samples} is negative")
        if self._at % self.block:
            before = self.consumed_samples - self._at % self.block
            raise ValueError(
                f"consumed_samples: {self.consumed_samples} is {self._at} samples into epoch "
                f"{self.epoch}, which is not a multiple of micro_batch_size x data_parallel_size "
                f"= {self.micro_batch_size} x {self.data_parallel_size} = {self.block}. Resume "
                f"from {before} or {before + self.block}, or with a step that divides {self._at}"
            )

    @property
    def block(self) -> int:
        """Samples that all ranks together take at once."""
        return self.micro_batch_size * self.data_parallel_size

    @property
    def active_samples(self) -> int:
        """Samples of one epoch, for all ranks together."""
        return self.total_samples - self.total_samples % self.block

    @property
    def epoch(self) -> int:
        """The epoch this sampler is in, from 0; also the seed of its permutation."""
        return self.consumed_samples // self.active_samples

    @property
    def _at(self) -> int:
        return self.consumed_samples % self.active_samples

    def __len__(self) -> int:
        return (self.active_samples - self._at) // self.block

    def batches(self, start: int = 0) -> Iterator[Int64[np.ndarray, " batch"]]:
        """The batches of this rank from batch `start` on; see `BatchSampler`."""
        check_batch_number(start, len(self), "start")
        return self._batches(start)

    def _batches(self, start: int) -> Iterator[Int64[np.ndarray, " batch"]]:
        if start == len(self):
            return
        at = self._at + start * self.block
        if self.data_sharding:
            bucket = self.active_samples // self.data_parallel_size
            ours = torch_randperm(bucket, self.epoch)[at // self.data_parallel_size :]
            ours += self.data_parallel_rank * bucket
        else:
            full = self.total_samples - self.total_samples % self.micro_batch_size
            epoch = torch_randperm(full, self.epoch)[at : self.active_samples]
            # A copy, so that the permutation itself can go.
            ours = epoch[self.data_parallel_rank :: self.data_parallel_size].copy()
        yield from ours.reshape(-1, self.micro_batch_size)

    def consumed_after(self, batches: int) -> int:
        """Samples consumed after this many batches from here; see `BatchSampler`."""
        if batches < 0:
            raise IndexError(f"batches: {batches} is negative")
        return self.consumed_samples + batches * self.block

    def resume(self, consumed_samples: int) -> "MegatronPretrainingRandomSampler":
        """The same sampler from another place; see `BatchSampler`."""
        return replace(self, consumed_samples=consumed_samples)

    def order(self) -> Order:
        """What the order depends on; see `BatchSampler`."""
        order: dict[str, str | int] = {
            "order": "random",
            "total_samples": self.total_samples,
            "active_samples": self.active_samples,
        }
        if self.data_sharding:
            order["shards"] = self.data_parallel_size
            order["micro_batch_size"] = self.micro_batch_size
        else:
            order["permuted_samples"] = (
                self.total_samples - self.total_samples % self.micro_batch_size
            )
        return order
