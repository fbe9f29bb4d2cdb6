"""Paths: what is a URL, what is local, what exists, how large it is, what a pattern matches."""

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from coredata.storage.remote import filesystem

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(::[A-Za-z][A-Za-z0-9+.\-]*)*://")
_FILE = "file://"
_WILDCARDS = frozenset("*?[")


def is_url(path: str) -> bool:
    """Whether `path` is a URL (`s3://…`, `memory://…`, `file://…`) and not a plain local path."""
    return "://" in path and _URL.match(path) is not None


def local_path(path: str) -> str | None:
    """The local file that `path` means, or None for a URL of another machine or of memory.

    `file://` URLs are local: they are mapped and renamed like plain paths.
    """
    if path.startswith(_FILE):
        return path[len(_FILE) :]
    return None if is_url(path) else path


def join(base: str, *parts: str) -> str:
    """`base` and `parts` as one path; a URL is joined with slashes on every system."""
    if not is_url(base):
        return os.path.join(base, *parts)
    pieces = [base.rstrip("/") if not base.endswith("://") else base]
    for part in parts:
        slash = "" if pieces[-1].endswith("/") else "/"
        pieces.append(slash + part.strip("/"))
    return "".join(pieces)


def exists(path: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Whether there is a file (or directory) at `path`."""
    local = local_path(path)
    if local is not None:
        return os.path.exists(local)
    remote, key = filesystem(path, storage_options)
    return bool(remote.exists(key))


def size(path: str, storage_options: Mapping[str, Any] | None = None) -> int:
    """Size of the file in bytes.

    Raises:
        FileNotFoundError: there is no such file.
    """
    local = local_path(path)
    if local is not None:
        return os.stat(local).st_size
    remote, key = filesystem(path, storage_options)
    return int(remote.size(key))


def expand(
    patterns: str | Sequence[str], storage_options: Mapping[str, Any] | None = None
) -> list[str]:
    """The files that paths and patterns name, in the order given; a pattern's matches are sorted.

    A pattern holds `*`, `?`, `[…]` or `**` (any depth). A path that exists as it is written is
    taken as it is, whatever characters it holds. Directories that match a pattern are left out.

    Raises:
        FileNotFoundError: a path that does not exist, or a pattern that matches no file.
        IsADirectoryError: a path that is a directory.
    """
    listed = [patterns] if isinstance(patterns, str) else patterns
    return [path for pattern in listed for path in _expand_one(pattern, storage_options)]


def _expand_one(pattern: str, storage_options: Mapping[str, Any] | None) -> list[str]:
    if is_directory(pattern, storage_options):
        raise IsADirectoryError(
            f"{pattern} is a directory; name its files, for example {join(pattern, '*')}"
        )
    if exists(pattern, storage_options):
        return [pattern]
    if not _WILDCARDS.intersection(pattern):
        raise FileNotFoundError(f"{pattern} does not exist")
    found = sorted(_matches(pattern, storage_options))
    if not found:
        raise FileNotFoundError(f"no file matches {pattern}")
    return found


def is_directory(path: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Whether `path` is an existing directory."""
    local = local_path(path)
    if local is not None:
        return os.path.isdir(local)
    remote, key = filesystem(path, storage_options)
    return bool(remote.isdir(key))


def _matches(pattern: str, storage_options: Mapping[str, Any] | None) -> list[str]:
    local = local_path(pattern)
    if local is not None:
        scheme = pattern[: len(pattern) - len(local)]
        found = glob.glob(local, recursive=True, include_hidden=False)
        return [scheme + path for path in found if not os.path.isdir(path)]
    remote, key = filesystem(pattern, storage_options)
    entries = remote.glob(key, detail=True)
    return [remote.unstrip_protocol(name) for name in entries if entries[name]["type"] == "file"]
