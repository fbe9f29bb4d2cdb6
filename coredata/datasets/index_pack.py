"""Small index arrays of one dataset, kept together so that starting a run takes few system calls.

A blend of a thousand files has nine thousand index arrays, most of them small. Their bytes stand a
second time in one file, `arrays.pack`. The copy counts only while the files themselves are as they
were when it was made, by size and time of change.

The pack is a line of JSON (name, dtype and shape of each array, size and time of each file, the
checksum of what follows), filled up with blanks to a multiple of 8 bytes, then the arrays, each
filled up likewise.
"""

import json
import os
from collections.abc import Mapping, Sequence

import numpy as np

from coredata._typing import Shaped
from coredata.datasets.checksum import checksum_of_bytes
from coredata.datasets.npy import DamagedFileError

_AT_MOST = 1 << 14
"""Bytes of all arrays of a dataset together; above, reading them costs more than mapping files."""


def packed(arrays: Mapping[str, Shaped[np.ndarray, "..."]], stem: str) -> bytes | None:
    """What to write to `{stem}arrays.pack`; None if the arrays are too large.

    Args:
        arrays: name -> array, whose file `{stem}{name}.npy` has been written.
        stem: path that the files begin with, on this machine.
    """
    if sum(array.nbytes for array in arrays.values()) > _AT_MOST:
        return None
    content = b"".join(_padded(array.tobytes(), b"\0") for array in arrays.values())
    try:
        files = [_file(stem, name) for name in arrays]
    except FileNotFoundError:  # another process is replacing them
        return None
    header = {
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()],
        "files": files,
        "checksum": checksum_of_bytes(content),
    }
    # The line break takes the place of the last blank.
    return _padded(json.dumps(header).encode() + b" ", b" ")[:-1] + b"\n" + content


def unpacked(data: bytes, names: Sequence[str] | None, stem: str) -> dict[str, np.ndarray] | None:
    """The arrays, if a pack is of these `names` (None: any) and no file has been touched since.

    Raises:
        DamagedFileError: the pack is not what was written.
    """
    try:
        start = data.index(b"\n") + 1
        header = json.loads(str(data[:start], "utf-8"))
        kept = [name for name, _, _ in header["arrays"]]
        if names is not None and kept != list(names):
            return None
        if [_file(stem, name) for name in kept] != header["files"]:
            return None
        if checksum_of_bytes(memoryview(data)[start:]) != header["checksum"]:
            raise DamagedFileError(f"{stem}arrays.pack holds arrays that are not as written")
        arrays = {}
        for name, dtype, shape in header["arrays"]:
            array: np.ndarray = np.ndarray(shape, dtype, data, start)
            arrays[name] = array
            start += -(-array.nbytes // 8) * 8
        return arrays
    except OSError:
        return None
    except DamagedFileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{stem}arrays.pack: {error!r}") from error


def _padded(content: bytes, filler: bytes) -> bytes:
    return content + filler * (-len(content) % 8)


def _file(stem: str, name: str) -> list[int]:
    """Size and time of change, in nanoseconds."""
    status = os.stat(f"{stem}{name}.npy")
    return [status.st_size, status.st_mtime_ns]
