"""Readers of local files: mapped into memory, or read by position."""

import errno
import mmap
import os
import sys
import weakref
from typing import Any, final

import numpy as np

from coredata._typing import Int64, UInt8
from coredata.storage.paths import local_path
from coredata.storage.reader import ByteReader, InMemoryReader, check_out, check_range


def _local(path: str) -> str:
    local = local_path(path)
    if local is None:
        raise ValueError(f"{path} is not a local file; open it with open_reader(path)")
    return local


def _open_descriptor(path: str) -> int:
    local = _local(path)
    if os.path.isdir(local):
        raise IsADirectoryError(errno.EISDIR, "is a directory, and a file was expected", path)
    try:
        return os.open(local, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _explained(path, error) from error


def _explained(path: str, error: OSError) -> OSError:
    """The same error, with what to do when the process has run out of file descriptors."""
    if error.errno != errno.EMFILE:
        return error
    advice = "too many open files in this process; raise the limit (ulimit -n 65536)"
    return OSError(errno.EMFILE, advice, path)


@final
class MappedFile(InMemoryReader):
    """A local file mapped into memory, read-only. An empty file is an empty array."""

    def _load(self) -> np.ndarray:
        return _map(self._path)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return MappedFile, (self._path,)


@final
class PositionalFile(ByteReader):
    """A local file read by position (`pread`), for file systems where mapping hurts.

    Reads share no file position, so threads and forked processes may use one reader at once.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._size = 0
        self._closer: weakref.finalize[..., Any] | None = None

    @property
    def path(self) -> str:
        """The path, as it was given."""
        return self._path

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        self._open()
        return self._size

    def view(self) -> None:
        """None: the bytes have to be read."""

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """Bytes `offset … offset + length`, newly read."""
        check_range(self._path, self.size, offset, length)
        out = np.empty(length, np.uint8)
        self._read_into(out.data, offset)
        return out.data

    def read_ranges(
        self,
        offsets: Int64[np.ndarray, " ranges"],
        lengths: Int64[np.ndarray, " ranges"],
        out: UInt8[np.ndarray, " bytes"],
        out_offsets: Int64[np.ndarray, " ranges"],
    ) -> None:
        """Read ranges of the file into `out`, one system call each."""
        size = self.size
        buffer = out.data
        for offset, length, start in zip(
            offsets.tolist(), lengths.tolist(), out_offsets.tolist(), strict=True
        ):
            check_range(self._path, size, offset, length)
            check_out(self._path, out.size, start, length)
            self._read_into(buffer[start : start + length], offset)

    def prefetch(
        self, offsets: Int64[np.ndarray, " ranges"], lengths: Int64[np.ndarray, " ranges"]
    ) -> None:
        """Nothing: a local read costs too little."""

    def close(self) -> None:
        """Close the file."""
        if self._closer is not None:
            self._closer()
        self._descriptor = self._closer = None

    def _open(self) -> int:
        if self._descriptor is None:
            descriptor = _open_descriptor(self._path)
            self._closer = weakref.finalize(self, os.close, descriptor)
            self._size = os.fstat(descriptor).st_size
            self._descriptor = descriptor
        return self._descriptor

    def _read_into(self, buffer: memoryview, offset: int) -> None:
        descriptor = self._open()
        done = 0
        # One call gives at most 2 GiB, and may give less.
        while done < len(buffer):
            count = os.preadv(descriptor, [buffer[done:]], offset + done)
            if count == 0:
                raise ValueError(
                    f"{self._path} ended at byte {offset + done}, but had {self._size} bytes when "
                    "it was opened; it was cut while it was read"
                )
            done += count

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return PositionalFile, (self._path,)


def _map(path: str) -> np.ndarray:
    descriptor = _open_descriptor(path)
    try:
        if os.fstat(descriptor).st_size == 0:  # nothing can be mapped
            return np.frombuffer(b"", np.uint8)
        return np.frombuffer(_mapping(descriptor), np.uint8)
    except OSError as error:
        raise _explained(path, error) from error
    finally:
        os.close(descriptor)


def _mapping(descriptor: int) -> mmap.mmap:
    if sys.version_info >= (3, 13):  # earlier, each mapping keeps a file descriptor for itself
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ, trackfd=False)
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
