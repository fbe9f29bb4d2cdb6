"""From command-line flags to the packing plan of a run, for trainers and for prepare-cache."""

import argparse
from typing import Any

from coredata.datasets import CachedSchedule, CachedWindows, Schedule
from coredata.datasets.pack_lengths import row_datasets, single_samples
from coredata.datasets.varlen import longest_sample
from coredata.tools.data_arguments import packing_scheduler
from coredata.tools.data_sizes import data_parallel_size
from coredata.tools.packing_flags import ROW_PACKERS


def packing_from_args(args: argparse.Namespace, dataset: Any) -> CachedWindows | CachedSchedule:
    """How the flags pack the samples of a dataset; nothing is read or planned yet.

    Rows of fixed length (`CachedWindows`, which `coredata_jax.PackedBatches(cached=True)` goes by)
    for a `--sequence-packing-scheduler` of `coredata.varlen.PACKERS`; packs of global batches
    (`CachedSchedule`, for `coredata_torch.PackedLoader`) for dp_balanced.

    Args:
        args: what a parser with `add_data_arguments` gave.
        dataset: one that `datasets_from_args` made of them.

    Raises:
        ValueError: flags that pack nothing, or whose plans depend on more than lengths.
    """
    scheduler = check_packing(args)
    ranks = args.context_parallel_size
    room = args.max_seqlen_per_dp_cp_rank
    if room is None:
        room = -(-_longest(dataset) // ranks)
    if scheduler in ROW_PACKERS:
        return CachedWindows(
            dataset,
            room * ranks,
            args.packing_window,
            scheduler,
            args.max_segments_per_row,
        )
    size = data_parallel_size(args)
    micro = 1 if args.micro_batch_size is None else args.micro_batch_size
    batch = micro * size if args.global_batch_size is None else args.global_batch_size
    group = args.microbatch_group_size_per_vp_stage
    return CachedSchedule(dataset, Schedule(batch, room, size, micro, ranks, group))


def check_packing(args: argparse.Namespace) -> str:
    """The scheduler of flags whose plan can be made beforehand.

    Raises:
        ValueError: nothing is packed, or every step is planned as it comes; the text says why.
    """
    scheduler = packing_scheduler(args)
    if scheduler is None:
        raise ValueError(
            "nothing is packed, so there is no plan to make: that needs --use-varlen-dataset "
            "without --varlen-sbhd-validation, or --sft with --sequence-packing-scheduler"
        )
    if scheduler == "default_dynamic_cp":
        raise ValueError(
            "default_dynamic_cp chooses context-parallel sizes step by step, so there is no plan "
            "to make beforehand. Give --sequence-packing-scheduler dp_balanced, or plan none"
        )
    if args.dataloader_type not in (None, "single"):
        raise ValueError(
            f"--dataloader-type {args.dataloader_type}: plans are made beforehand for the order "
            "of single alone; leave it out, or plan none"
        )
    if scheduler == "dp_balanced" and args.rampup_batch_size:
        raise ValueError(
            "--rampup-batch-size: dp_balanced packs global batches, which are planned beforehand "
            "if they have one size; leave it out, or plan none"
        )
    for flag in ("max-seqlen-per-dp-cp-rank", "packing-window", "max-segments-per-row"):
        value = getattr(args, flag.replace("-", "_"))
        if value is not None and value < 1:
            raise ValueError(f"--{flag} {value}: need at least 1")
    return scheduler


def _longest(dataset: Any) -> int:
    config: Any = next(row_datasets(dataset)).config
    return longest_sample(config) if single_samples(dataset) else int(config.sequence_length)
