"""Read `.npy` files with few system calls, and say what is wrong with broken ones."""

import math
import mmap
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from coredata._typing import Shaped
from coredata.storage import local_path, read_bytes

_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    rb"\{'descr': '([<|][biuf]\d+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \} *\n"
)
_DTYPES = {
    f"{order}{kind}".encode(): np.dtype(f"{order}{kind}")
    for order in "<|"
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "b1")
}
_SMALL = 1 << 18
"""Files up to this size are read: a mapping costs a page fault and holds a file descriptor."""


class DamagedFileError(ValueError):
    """A file that is not what it should be. Its text says in what way."""


def open_npy(
    path: str, storage_options: Mapping[str, Any] | None = None
) -> Shaped[np.ndarray, "..."]:
    """The array in a `.npy` file, read-only; mapped if it is local and not small.

    Raises:
        FileNotFoundError: there is no such file.
        DamagedFileError: not a `.npy` file of numbers in C order, or not of the size that its
            header implies.
    """
    data = open_bytes(path, storage_options)
    dtype, shape, offset = _parse_header(path, data)
    count = math.prod(shape)
    expected = offset + count * dtype.itemsize
    if len(data) != expected:
        raise DamagedFileError(
            f"{path} has {len(data)} bytes; its header ({dtype.name}, shape {shape}) implies "
            f"{expected}"
        )
    if count == 0:
        return np.empty(shape, dtype)
    array = np.frombuffer(data, dtype, count, offset)
    return array if len(shape) == 1 else array.reshape(shape)


def open_bytes(path: str, storage_options: Mapping[str, Any] | None = None) -> Any:
    """The content of a file, as bytes or, if it is local and not small, as a mapping.

    Raises:
        FileNotFoundError: there is no such file.
    """
    local = local_path(path)
    return read_bytes(path, storage_options) if local is None else _map(local)


def _map(path: str) -> Any:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        size = os.fstat(descriptor).st_size
        if size <= _SMALL:
            return os.read(descriptor, size)
        if sys.version_info >= (3, 13):
            return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ, trackfd=False)
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)


def _parse_header(path: str, data: Any) -> tuple[np.dtype, tuple[int, ...], int]:
    start = data[:12]
    if start[:6] != _MAGIC:
        raise DamagedFileError(f"{path} starts with {start[:6]!r}, not with {_MAGIC!r}")
    width = 2 if start[6:7] == b"\x01" else 4
    offset = 8 + width + int.from_bytes(start[8 : 8 + width], "little")
    match = _HEADER.fullmatch(data[8 + width : min(offset, 4096)])
    if match is None or match[2] == b"True":
        raise DamagedFileError(f"{path} has a header that is not that of an array of numbers")
    shape = tuple([int(extent) for extent in match[3].split(b",") if extent.strip()])
    dtype = _DTYPES.get(match[1])
    return np.dtype(match[1].decode("ascii")) if dtype is None else dtype, shape, offset
