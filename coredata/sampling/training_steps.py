"""Which samples a training step took, and which steps took a sample: both without walking a run."""

from dataclasses import dataclass

import numpy as np

from coredata._typing import Int64
from coredata.sampling.checks import check_positive, take_whole_numbers
from coredata.sampling.global_batch import GlobalBatchSampler
from coredata.sampling.protocol import BatchSampler
from coredata.sampling.ramp_up import BatchSizeRampUp
from coredata.sampling.random import MegatronPretrainingRandomSampler
from coredata.sampling.randperm import torch_randperm
from coredata.sampling.sequential import SequentialSampler


@dataclass(frozen=True)
class Takings:
    """Steps that took samples.

    Attributes:
        steps: numbers of steps, rising.
        samples: the sample that each took.
    """

    steps: Int64[np.ndarray, " takings"]
    samples: Int64[np.ndarray, " takings"]


@dataclass(frozen=True)
class TrainingSteps:
    """The steps of a run: step t takes one global batch, of all ranks together.

    Steps are counted from 0, so that t steps were done before step t (the iteration t + 1 of
    Megatron-LM's log). A last batch that is not full is a step only if the sampler drops nothing.

    Attributes:
        sampler: that of any rank: its order is what counts, not where it stands.
        global_batch_size: samples of a step over all ranks, or how they grow.
        consumed_samples: samples that were consumed before step 0; for runs whose batch size was
            changed on the way.

    Raises:
        ValueError: sizes below 1, or that a cyclic sampler's blocks do not divide.
    """

    sampler: BatchSampler
    global_batch_size: int | BatchSizeRampUp
    consumed_samples: int = 0

    def __post_init__(self) -> None:
        take_whole_numbers(self, "consumed_samples")
        if not isinstance(self.global_batch_size, BatchSizeRampUp):
            take_whole_numbers(self, "global_batch_size")
            check_positive(global_batch_size=self.global_batch_size)
        if self.consumed_samples < 0:
            raise ValueError(f"consumed_samples: {self.consumed_samples} is negative")
        if isinstance(self.sampler, MegatronPretrainingRandomSampler):
            self._sizes.check_divisible(
                self.sampler.micro_batch_size, self.sampler.data_parallel_size
            )

    def __len__(self) -> int:
        """Number of steps; of a cyclic sampler, those that begin in its first epoch."""
        if isinstance(self.sampler, MegatronPretrainingRandomSampler):
            last = max(self.sampler.active_samples - 1, self.consumed_samples)
            return self._sizes.steps_until(last, self.consumed_samples) + 1
        total = max(self.sampler.total_samples, self.consumed_samples)
        whole = self._sizes.steps_until(total, self.consumed_samples)
        return whole + (not self._drops_last and self.consumed_before(whole) < total)

    def consumed_before(self, step: int) -> int:
        """Samples that were consumed when step `step` began: what a state has there."""
        return self._sizes.consumed_after(step, self.consumed_samples)

    def step_at(self, consumed_samples: int) -> int:
        """The step that begins, or has begun last, where so many samples are consumed.

        Raises:
            ValueError: it lies before the first step.
        """
        return self._sizes.steps_until(consumed_samples, self.consumed_samples)

    def samples(self, step: int) -> Int64[np.ndarray, " batch"]:
        """The samples of a step, of all ranks, in the order in which ranks share them.

        Raises:
            IndexError: there is no such step.
        """
        cyclic = self.sampler.cyclic
        if step < 0 or (not cyclic and step >= len(self)):
            count = len(self)
            numbered = f"steps are numbered from 0 to {count - 1}" if count else "there is none"
            raise IndexError(
                f"step {step} of a run of {count} steps over {self.sampler.total_samples} "
                f"samples; {numbered}"
            )
        begin = self.consumed_before(step)
        end = begin + self._sizes.batch_size(begin)
        if isinstance(self.sampler, MegatronPretrainingRandomSampler):
            return _shuffled(self.sampler, np.arange(begin, end, dtype=np.int64))
        return np.arange(begin, min(end, self.sampler.total_samples), dtype=np.int64)

    def taking(self, samples: Int64[np.ndarray, " wanted"], steps: int | None = None) -> Takings:
        """The steps that took any of `samples`, among the first `steps` (default: all).

        Of a cyclic sampler, which has no end, the default is one epoch. Each of its epochs is
        shuffled once for this, 8 bytes a sample.
        """
        count = len(self) if steps is None else steps
        if not self.sampler.cyclic:
            count = min(count, len(self))
        begin, end = self.consumed_samples, self.consumed_before(count)
        wanted = np.unique(samples)
        if isinstance(self.sampler, MegatronPretrainingRandomSampler):
            places, found = _places(self.sampler, wanted, begin, end)
        else:
            end = min(end, self.sampler.total_samples)
            places = found = wanted[(wanted >= begin) & (wanted < end)]
        return Takings(self._steps_at(places), found)

    @property
    def _sizes(self) -> BatchSizeRampUp:
        size = self.global_batch_size
        if isinstance(size, BatchSizeRampUp):
            return size
        return BatchSizeRampUp(size, size, 0, size)

    @property
    def _drops_last(self) -> bool:
        if isinstance(self.sampler, SequentialSampler | GlobalBatchSampler):
            return self.sampler.drop_last
        return False

    def _steps_at(self, places: np.ndarray) -> np.ndarray:
        if isinstance(self.global_batch_size, int):
            return (places - self.consumed_samples) // self.global_batch_size
        return np.array([self.step_at(place) for place in places.tolist()], np.int64)


def _shuffled(
    sampler: MegatronPretrainingRandomSampler, places: np.ndarray
) -> Int64[np.ndarray, " places"]:
    """The samples at these places of the endless order of a cyclic sampler."""
    samples = np.empty(places.size, np.int64)
    epochs, at = np.divmod(places, sampler.active_samples)
    for epoch in np.unique(epochs).tolist():
        here = epochs == epoch
        samples[here] = _of_epoch(sampler, epoch)[at[here]]
    return samples


def _places(
    sampler: MegatronPretrainingRandomSampler, wanted: np.ndarray, begin: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where `wanted` samples come in the endless order from `begin` to `end`, and which."""
    active = sampler.active_samples
    mask = np.zeros(sampler.total_samples, np.bool_)
    mask[wanted[(wanted >= 0) & (wanted < mask.size)]] = True
    places, found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for epoch in range(begin // active, -(-end // active)):
        order = _of_epoch(sampler, epoch)
        at = np.flatnonzero(mask[order])
        place = at + epoch * active
        inside = (place >= begin) & (place < end)
        places.append(place[inside])
        found.append(order[at[inside]])
    return np.concatenate(places), np.concatenate(found)


def _of_epoch(sampler: MegatronPretrainingRandomSampler, epoch: int) -> np.ndarray:
    """The samples of an epoch in the order in which all ranks together consume them.

    A block of `micro_batch_size` x `data_parallel_size` is what they take at once.
    """
    active = sampler.active_samples
    if not sampler.data_sharding:
        full = sampler.total_samples - sampler.total_samples % sampler.micro_batch_size
        return torch_randperm(full, epoch)[:active]
    ranks = sampler.data_parallel_size
    bucket = active // ranks
    order = torch_randperm(bucket, epoch).reshape(-1, 1, sampler.micro_batch_size)
    starts = np.arange(ranks, dtype=np.int64).reshape(1, -1, 1) * bucket
    return (order + starts).reshape(-1)
