"""Prefixes of token files that commands write."""

import os
import shlex


def check_pair_prefix(prefix: str) -> None:
    """Refuse what names no pair of files to be written.

    Raises:
        ValueError: an empty prefix, a directory, or one that ends in .bin or .idx.
    """
    check_not_empty(prefix)
    if prefix.endswith("/"):
        raise ValueError(
            f"--output-prefix {shlex.quote(prefix)} ends in a slash and names no file; give a "
            f"name in that directory, such as {shlex.quote(prefix + 'merged')}"
        )
    stem, suffix = os.path.splitext(prefix)
    if suffix in (".bin", ".idx"):
        raise ValueError(
            f"--output-prefix {shlex.quote(prefix)}: a prefix is a path without .bin and .idx; use "
            f"{shlex.quote(stem)}"
        )


def check_not_empty(prefix: str) -> None:
    """Refuse a prefix of no characters, such as an unset variable gives.

    Raises:
        ValueError: it is empty.
    """
    if not prefix.strip():
        raise ValueError("--output-prefix is empty; give the path that files begin with, as out/a")
