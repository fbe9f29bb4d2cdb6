"""What `coredata prepare-cache` refuses before it builds anything."""

import os

from coredata.storage import local_path


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
