"""The two files of a prefix."""

import os
from collections.abc import Mapping
from typing import Any

from coredata.formats.errors import MissingFileError
from coredata.storage import exists

_SUFFIXES = (".bin", ".idx")


def get_idx_path(path_prefix: str | os.PathLike[str]) -> str:
    """Where the index of a prefix is: `PREFIX.idx`."""
    return os.fspath(path_prefix) + ".idx"


def get_bin_path(path_prefix: str | os.PathLike[str]) -> str:
    """Where the tokens of a prefix are: `PREFIX.bin`."""
    return os.fspath(path_prefix) + ".bin"


def prefix_exists(
    path_prefix: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> bool:
    """Whether both files of a prefix exist."""
    return exists(get_idx_path(path_prefix), storage_options) and exists(
        get_bin_path(path_prefix), storage_options
    )


def missing_file(
    path_prefix: str, storage_options: Mapping[str, Any] | None = None
) -> MissingFileError:
    """The error for a prefix of which a file could not be opened: which half, and why perhaps."""
    paths = [get_bin_path(path_prefix), get_idx_path(path_prefix)]
    missing = [path for path in paths if not exists(path, storage_options)]
    stem, suffix = os.path.splitext(path_prefix)
    if suffix in _SUFFIXES and prefix_exists(stem, storage_options):
        return MissingFileError(
            f"{path_prefix} was given as a path prefix, which is a path without .bin and .idx; "
            f"use {stem}"
        )
    if len(missing) == 1:
        present = next(path for path in paths if path not in missing)
        return MissingFileError(
            f"{missing[0]} does not exist, although {present} does; a dataset is a pair of files: "
            "copy the other half beside it, or write the dataset again"
        )
    return MissingFileError(
        f"{' and '.join(missing or paths)} do not exist; give the path of the pair without "
        ".bin and .idx"
    )
