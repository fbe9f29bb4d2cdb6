"""The flags that say which of a run's datasets to look at."""

import argparse

SPLITS = ("train", "valid", "test")


def add_split_arguments(parser: argparse.ArgumentParser) -> None:
    """Which of the datasets, and what is skipped in it."""
    group = parser.add_argument_group("which dataset")
    group.add_argument("--which", choices=SPLITS, default="train", help="split (default: train)")
    group.add_argument(
        "--set", type=int, default=0, metavar="N", help="of several validation sets, which (0)"
    )
    group.add_argument(
        "--skip-samples",
        metavar="LIST",
        help="samples that the run passes over: numbers and ranges such as 17,40-55, or a file of "
        "these",
    )
