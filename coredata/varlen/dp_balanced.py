"""Megatron-LM's schedule of packs over data-parallel ranks, computed from lengths alone."""

import numpy as np

from coredata._typing import Int64, Integer
from coredata.varlen.pack import pack_segments
from coredata.varlen.plan import PackPlan
from coredata.varlen.segments import Segments


def dp_balanced(
    lengths: Integer[np.ndarray, " samples"],
    max_seqlen_per_dp_cp_rank: int,
    data_parallel_size: int,
    context_parallel_size: int = 1,
    microbatch_group_size_per_vp_stage: int | None = None,
    *,
    samples: Int64[np.ndarray, " samples"] | None = None,
) -> PackPlan:
    """Pack a global batch so that every data-parallel rank gets the same number of packs.

    Samples go into packs in their order, each as long as it fits. Then, from the last pack
    backwards, last samples become packs of their own until the number of packs divides evenly.
    Row i · data_parallel_size + r of the plan is microbatch i of data-parallel rank r:
    `plan.share(r, data_parallel_size)`.

    Args:
        lengths: padded length of each sample, in order of data-parallel rank, then local order.
        max_seqlen_per_dp_cp_rank: tokens that a rank may hold of a pack.
        data_parallel_size: ranks that get different packs.
        context_parallel_size: ranks that share a pack.
        microbatch_group_size_per_vp_stage: with an interleaved pipeline, the number of microbatches
            is a multiple of this.
        samples: the samples' numbers; 0, 1, 2, … by default.

    Raises:
        ValueError: a sample longer than a pack or without tokens, too few samples for the ranks, or
            a size below 1.
    """
    group = microbatch_group_size_per_vp_stage
    for name, size in (
        ("max_seqlen_per_dp_cp_rank", max_seqlen_per_dp_cp_rank),
        ("data_parallel_size", data_parallel_size),
        ("context_parallel_size", context_parallel_size),
        ("microbatch_group_size_per_vp_stage", 1 if group is None else group),
    ):
        if size < 1:
            raise ValueError(f"{name} must be at least 1, found {size}.")
    lengths = lengths.astype(np.int64)
    samples = np.arange(lengths.size) if samples is None else samples
    limit = max_seqlen_per_dp_cp_rank * context_parallel_size
    if lengths.size and not 1 <= lengths.min() <= lengths.max() <= limit:
        wrong = int(np.argmax((lengths < 1) | (lengths > limit)))
        raise ValueError(
            f"Sample {samples[wrong]} has a padded length of {lengths[wrong]}; a pack holds 1 to "
            f"{limit} tokens (max_seqlen_per_dp_cp_rank={max_seqlen_per_dp_cp_rank} × "
            f"context_parallel_size={context_parallel_size}). Cut it, or use "
            f"max_seqlen_per_dp_cp_rank={-(-int(lengths.max()) // context_parallel_size)} or more."
        )
    plan, _ = pack_segments(
        Segments(samples, np.zeros(lengths.size, np.int64), lengths), limit, packer="next_fit"
    )
    multiple = data_parallel_size * (group or 1)
    return _spread(plan, -len(plan) % multiple, multiple)


def rank_groups(
    plan: PackPlan, data_parallel_size: int, context_parallel_size: int = 1
) -> list[list[list[int]]]:
    """The sample numbers of each microbatch and rank: `groups[microbatch][rank]`.

    Ranks are counted over data × context parallelism, context-parallel ranks next to each other;
    those of one data-parallel rank have the same samples.

    Raises:
        ValueError: rows that do not divide evenly.
    """
    shares = [plan.share(rank, data_parallel_size) for rank in range(data_parallel_size)]
    return [
        [
            share[microbatch].samples.tolist()
            for share in shares
            for _ in range(context_parallel_size)
        ]
        for microbatch in range(len(shares[0]))
    ]


def _spread(plan: PackPlan, missing: int, multiple: int) -> PackPlan:
    """Make `missing` more packs, each of the last sample of a pack that has several."""
    counts = plan.row_segments().copy()
    moved: list[int] = []
    for row in range(len(plan) - 1, -1, -1):
        while counts[row] > 1 and len(moved) < missing:
            counts[row] -= 1
            moved.append(int(plan.row_splits[row] + counts[row]))
    if len(moved) < missing:
        raise ValueError(
            f"{len(plan.segments)} samples are not enough: every one of {multiple} packs (or a "
            f"multiple of that; {len(plan)} are filled) needs one. Use a larger global batch, "
            "fewer data-parallel ranks or a smaller max_seqlen_per_dp_cp_rank."
        )
    kept = np.ones(len(plan.segments), np.bool_)
    kept[moved] = False
    order = np.concatenate([np.flatnonzero(kept), np.array(moved, np.int64)])
    counts = np.concatenate([counts, np.ones(len(moved), np.int64)])
    splits = np.concatenate([[0], np.cumsum(counts)])
    return PackPlan(plan.segments.take(order), splits, plan.limit)
