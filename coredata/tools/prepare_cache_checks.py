"""What `coredata prepare-cache` refuses before it builds anything."""

import argparse
import os

from coredata.storage import local_path
from coredata.tools.data_sizes import RunSizes

_MOST = 1 << 40
"""Samples whose index arrays alone would take tens of terabytes."""


def check_possible(args: argparse.Namespace, sizes: RunSizes) -> None:
    """Refuse sizes that no computer holds, by the flags that ask for them.

    Raises:
        ValueError: the text names the flags and the number of samples.
    """
    for split, samples in zip(("train", "valid", "test"), sizes.samples, strict=True):
        if samples is not None and samples > _MOST:
            raise ValueError(
                f"{_asked(args)}: that is {samples:,} {split} samples, whose index no computer "
                f"holds; at most {_MOST:,} are possible"
            )


def _asked(args: argparse.Namespace) -> str:
    if args.num_samples is not None:
        return f"--num-samples {' '.join(args.num_samples)}"
    names = ("train_iters", "train_samples", "global_batch_size", "micro_batch_size", "eval_iters")
    given = [(name, getattr(args, name)) for name in names]
    return " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value in given if value is not None
    )


def check_skip(end: int, train: int | list[int] | None) -> None:
    """Refuse to skip samples that the training set does not have.

    Args:
        end: one more than the last sample to be skipped; 0 if there is none.
        train: samples of the training set; None if that is not known.

    Raises:
        ValueError: the text names the sample and the size.
    """
    if isinstance(train, int) and end > train:
        numbered = f", numbered 0 to {train - 1:,}" if train else ""
        raise ValueError(
            f"--skip-samples: sample {end - 1:,} is to be skipped, but training has {train:,} "
            f"samples{numbered}. Does the list name steps, or the samples of another run?"
        )


def check_directory(path: str) -> None:
    """Refuse a cache that is a file, or below one.

    Raises:
        NotADirectoryError: the text names the file.
    """
    local = local_path(path)
    while local:
        if os.path.exists(local) and not os.path.isdir(local):
            raise NotADirectoryError(
                f"--data-cache-path {path}: {local} is a file, not a directory; give the path of "
                "a directory, which need not exist yet"
            )
        local = os.path.dirname(local) if local != os.path.dirname(local) else ""
