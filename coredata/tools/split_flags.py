"""The flags that say which of a run's datasets to look at."""

import argparse

SPLITS = ("train", "valid", "test")


def add_split_arguments(parser: argparse.ArgumentParser) -> None:
    """Which of the datasets."""
    group = parser.add_argument_group("which dataset")
    group.add_argument("--which", choices=SPLITS, default="train", help="split (default: train)")
    group.add_argument(
        "--set", type=int, default=0, metavar="N", help="of several validation sets, which (0)"
    )
