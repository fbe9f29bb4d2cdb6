"""The flags that say how samples of varying length are packed."""

import argparse

ROW_PACKERS = (
    "best_fit_decreasing",
    "first_fit_decreasing",
    "best_fit",
    "first_fit",
    "next_fit",
)
"""What may pack samples into rows of one length: `coredata.varlen.PACKERS`."""

SCHEDULERS = ("dp_balanced", "default_dynamic_cp", *ROW_PACKERS)
"""What may pack samples of varying length."""


def add_packing_flags(parser: argparse.ArgumentParser) -> None:
    """What shares a pack."""
    group = parser.add_argument_group("packing", "of samples of varying length")
    group.add_argument(
        "--sequence-packing-scheduler",
        choices=SCHEDULERS,
        help="dp_balanced by default with --use-varlen-dataset; those that fit pack rows of one "
        "length (not in the reference)",
    )
    group.add_argument(
        "--max-seqlen-per-dp-cp-rank",
        type=int,
        metavar="N",
        help="room for tokens of a pack, or row, on a rank (the longest sample)",
    )
    group.add_argument(
        "--microbatch-group-size-per-virtual-pipeline-stage",
        dest="microbatch_group_size_per_vp_stage",
        type=int,
        metavar="N",
        help="packs of a rank are a multiple of it",
    )
    group.add_argument(
        "--max-segments-per-row",
        type=int,
        default=64,
        metavar="N",
        help="of rows of one length (64; not in the reference)",
    )
    group.add_argument(
        "--packing-window",
        type=int,
        default=8192,
        metavar="N",
        help="samples that are packed together into rows (8192; not in the reference)",
    )
