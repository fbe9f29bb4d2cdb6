"""Errors of a disk that takes no more."""

import errno

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

HOW_TO_SEE = "see df, quota and ulimit -f"
"""What shows why a disk takes no more."""


def is_full(error: BaseException | None) -> bool:
    """Whether it is about a full disk, a quota, or a limit on the size of files."""
    return isinstance(error, OSError) and error.errno in _FULL
