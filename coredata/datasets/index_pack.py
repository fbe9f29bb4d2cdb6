"""Small index arrays of one dataset, kept together so that starting a run takes few system calls.

A blend of a thousand files has nine thousand index arrays, most of them small. Their bytes stand a
second time in `checksums.json`, which is read anyway. The copy counts only while the files
themselves are as they were when it was made, by size and time of change.
"""

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coredata._typing import Shaped
from coredata.datasets.checksum import checksum_of_bytes
from coredata.datasets.npy import DamagedFileError

_KEY = "contents"
_AT_MOST = 1 << 14
"""Bytes of all arrays of a dataset together; above, mapping the files costs less than text."""


def packed(arrays: Mapping[str, Shaped[np.ndarray, "..."]], stem: str) -> dict[str, Any]:
    """What to add to the records of `arrays`; nothing if they are too large.

    Args:
        arrays: name -> array, whose file `{stem}{name}.npy` has been written.
        stem: path that the files begin with, on this machine.
    """
    if sum(array.nbytes for array in arrays.values()) > _AT_MOST:
        return {}
    content = b"".join(_padded(array) for array in arrays.values())
    try:
        files = [_file(stem, name) for name in arrays]
    except FileNotFoundError:  # another process is replacing them
        return {}
    return {
        _KEY: {
            "files": files,
            "checksum": checksum_of_bytes(content),
            "bytes": base64.b64encode(content).decode("ascii"),
        }
    }


def unpacked(
    recorded: Mapping[str, Any], names: Sequence[str], stem: str
) -> dict[str, np.ndarray] | None:
    """The arrays, if the records hold a copy of them and no file has been touched since.

    Raises:
        DamagedFileError: the copy is not what was written.
    """
    contents = recorded.get(_KEY)
    if contents is None or [name for name in recorded if name != _KEY] != list(names):
        return None
    try:
        if [_file(stem, name) for name in names] != contents["files"]:
            return None
        content = base64.b64decode(contents["bytes"])
        if checksum_of_bytes(content) != contents["checksum"]:
            raise DamagedFileError(f"{stem}checksums.json holds arrays that are not as written")
        arrays, start = {}, 0
        for name in names:
            record = recorded[name]
            shape = record["shape"]
            array: np.ndarray = np.ndarray(shape, record["dtype"], content, start)
            arrays[name] = array
            start += -(-array.nbytes // 8) * 8
        return arrays
    except OSError:
        return None
    except DamagedFileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{stem}checksums.json: {error!r}") from error


def _padded(array: np.ndarray) -> bytes:
    return array.tobytes() + bytes(-array.nbytes % 8)


def _file(stem: str, name: str) -> list[int]:
    """Size and time of change, in nanoseconds."""
    status = os.stat(f"{stem}{name}.npy")
    return [status.st_size, status.st_mtime_ns]
