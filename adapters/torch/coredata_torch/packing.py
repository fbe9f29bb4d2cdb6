"""A global batch of variable-length samples, packed and shared out among data-parallel ranks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch.distributed as dist

from coredata.datasets import CachedSchedule
from coredata.datasets.protocol import Dataset
from coredata.loading import Loader
from coredata.loading.prefetch import Step, read_samples, steps
from coredata.sampling import BatchSampler
from coredata.sampling.checks import take_whole_numbers
from coredata.varlen import (
    PackPlan,
    TokenCounts,
    dp_balanced,
    pack_samples,
    token_counts,
    unpack_samples,
)
from coredata.varlen.microbatch import clear_padding
from coredata_torch.agreement import PlanMismatchError
from coredata_torch.exchange import HEADER, exchange, take_inventory, tell_end
from coredata_torch.peers import FailureTold, meet
from coredata_torch.tensors import Tensors, as_tensors

_DIGEST = 1
"""Integers of the digest of a plan."""


@dataclass(frozen=True)
class PackedStep:
    """What one rank does in a step.

    Attributes:
        microbatches: packs of this data-parallel rank, each with `tokens`, `labels`, `loss_mask`,
            `position_ids`, and int32 `cu_seqlens`, `cu_seqlens_padded` and `max_seqlen`.
        counts: tokens of the whole global batch and the sum of the squares of its samples' padded
            lengths, exact, for FLOPs.
    """

    microbatches: list[Tensors]
    counts: TokenCounts


@dataclass(frozen=True)
class PackingConfig:
    """How a global batch is packed; see `coredata.varlen.dp_balanced`.

    Raises:
        TypeError: a number that is no integer.
    """

    max_seqlen_per_dp_cp_rank: int
    """Tokens that a rank may hold of a pack."""

    context_parallel_size: int = 1
    """Ranks that share a pack: all of them read the same samples and call alike."""

    microbatch_group_size_per_vp_stage: int | None = None
    """With an interleaved pipeline, the number of microbatches is a multiple of this."""

    def __post_init__(self) -> None:
        """Check that they are integers; `dp_balanced` checks their range."""
        take_whole_numbers(self, "max_seqlen_per_dp_cp_rank", "context_parallel_size")
        if self.microbatch_group_size_per_vp_stage is not None:
            take_whole_numbers(self, "microbatch_group_size_per_vp_stage")


def pack_across_ranks(
    samples: Sequence[Mapping[str, Any]],
    config: PackingConfig,
    group: Any = None,
    *,
    plan: PackPlan | None = None,
    position: int = 0,
) -> PackedStep:
    """Pack the samples that all ranks have together, and give each rank its packs.

    Lengths are gathered, every rank computes the same schedule from them, and the samples go where
    they belong. With context parallelism each of the ranks that share packs does this in the
    data-parallel group of its own place, and all of them end up with the same packs;
    `context_parallel_partition` then says which positions each holds.

    What is wrong on one rank is heard by all of the group before samples are exchanged, so that
    none waits for another.

    Args:
        samples: those of this rank: packs with `cu_seqlens`, which are cut apart, or single samples
            with `padded_seq_len`. Fields beside `coredata.varlen.microbatch.FIELDS` stay behind.
        config: how to pack.
        group: the data-parallel group, without context parallelism; None for all processes. Data
            travel between CPUs: the group needs gloo, as from `init_process_group()` without a
            backend.
        plan: the schedule, where it is known already; the same on every rank.
        position: where this rank stands in the run, such as `consumed_samples`; the same on every
            rank.

    Raises:
        ValueError: samples that cannot be packed, too long, or too few for the ranks; a plan that
            is not for them.
        PeerFailedError: another rank's samples or plan are wrong.
        PlanMismatchError: on all ranks: they stand at different places, or have different plans.
    """
    with FailureTold(HEADER, group):
        parts = unpack_samples(samples)
    inventory = take_inventory(parts, group, position=position)
    size = dist.get_world_size(group)
    padded = inventory.lengths[:, 1]
    with FailureTold(_DIGEST, group):
        if plan is None:
            plan = dp_balanced(
                padded,
                config.max_seqlen_per_dp_cp_rank,
                size,
                config.context_parallel_size,
                config.microbatch_group_size_per_vp_stage,
            )
        else:
            limit = config.max_seqlen_per_dp_cp_rank * config.context_parallel_size
            _check_plan(plan, padded, size, limit)
    _check_same(plan, group)
    receivers = np.empty(len(padded), np.int64)
    receivers[plan.segments.samples] = np.repeat(np.arange(len(plan)), plan.row_segments()) % size
    mine = exchange(parts, inventory, receivers, group)
    share = plan.share(dist.get_rank(group), size)
    rows = [share[row].samples.tolist() for row in range(len(share))]
    packs = [clear_padding(pack_samples([mine[number] for number in row])) for row in rows]
    return PackedStep([as_tensors(pack) for pack in packs], token_counts(padded))


def _check_same(plan: PackPlan, group: Any) -> None:
    """Refuse ranks of which one has another plan: a message of 64 bits of its digest."""
    digests = meet([int(plan.digest[:15], 16)], group)
    different = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
    if different:
        raise PlanMismatchError(
            f"rank {different[0]} of the data-parallel group packs these samples otherwise than "
            "rank 0 does. Give all of them the same PackingConfig and schedule"
        )


def _check_plan(plan: PackPlan, padded: np.ndarray, size: int, limit: int) -> None:
    """Refuse a plan of other samples, or of other ranks or packs."""
    numbers, lengths = plan.segments.samples, plan.segments.lengths
    same = np.array_equal(np.sort(numbers), np.arange(padded.size))
    same = same and np.array_equal(lengths, padded[numbers])
    if same and len(plan) % size == 0 and plan.limit == limit:
        return
    raise ValueError(
        f"the plan has {len(numbers)} samples of {plan.tokens} tokens in {len(plan)} packs of up "
        f"to {plan.limit}; here are {padded.size} samples of {padded.sum()} tokens, {size} "
        f"data-parallel ranks, and packs of up to {limit}. Give the schedule of this run: the same "
        "files, settings, sampler, ranks and room"
    )


@final
class PackedLoader(Loader[PackedStep]):
    """Steps of packed microbatches from a dataset of variable-length samples.

    Each step takes a whole global batch (`HybridCPMegatronPretrainingSampler`), so nothing is held
    from one step to the next, and the position is the consumed samples alone.

    All ranks of the group must call `next` alike; it raises what `pack_across_ranks` does. If
    reading fails on one of them, that one raises what it was, the others `PeerFailedError`, and all
    stay before that step.

    Args:
        dataset: samples of varying length.
        sampler: which samples of a global batch this rank takes.
        config: how to pack.
        group: see `pack_across_ranks`.
        schedule: the plans of whole global batches, such as `coredata prepare-cache
            --packing-plan` makes. Batches that it does not have are planned as they come.
    """

    def __init__(
        self,
        dataset: Dataset,
        sampler: BatchSampler,
        config: PackingConfig,
        group: Any = None,
        *,
        schedule: CachedSchedule | None = None,
    ) -> None:
        super().__init__(dataset, sampler)
        self.config = config
        self.group = group
        self.schedule = schedule
        self._steps: Iterator[Step] | None = None

    def _take(self) -> tuple[int, PackedStep]:
        with FailureTold(HEADER, self.group):
            if self._steps is None:
                self._steps = steps(self.sampler.resume(self._consumed))
            step = next(self._steps, None)
            if step is not None:
                samples = read_samples(self.dataset, step)
                plan = None if self.schedule is None else self.schedule.step(step.consumed_samples)
        if step is None:
            tell_end(self._consumed, self.group)
            raise StopIteration
        packed = pack_across_ranks(
            samples, self.config, self.group, plan=plan, position=self._consumed
        )
        return step.consumed_samples, packed

    def _halt(self) -> None:
        self._steps = None
