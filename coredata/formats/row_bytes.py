"""Ranges of bytes of a file of lines: local, behind a URL, or decompressed."""

import os
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, BinaryIO, final

import numpy as np

from coredata._typing import Int64
from coredata.storage import ByteReader, is_url, local_path, open_reader
from coredata.storage.remote import filesystem


class RowBytes(ABC):
    """Reads ranges of one file, in any thread, and in a process forked from this one."""

    @abstractmethod
    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset` on; fewer where the file ends."""

    def prefetch(
        self, offsets: Int64[np.ndarray, " ranges"], lengths: Int64[np.ndarray, " ranges"]
    ) -> None:
        """Begin to fetch ranges that will be read soon, where that is of use."""
        return None


def file_bytes(
    path: str, *, mmap: bool = True, storage_options: Mapping[str, Any] | None = None
) -> RowBytes:
    """Ranges of a plain file: mapped or read by position if local, fetched if not."""
    return FileRanges(open_reader(path, mmap=mmap, storage_options=storage_options))


@final
class FileRanges(RowBytes):
    """Ranges of a file that is not compressed."""

    def __init__(self, reader: ByteReader) -> None:
        self._reader = reader

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file."""
        length = min(length, self._reader.size - offset)
        return bytes(self._reader.read(offset, length)) if length > 0 else b""

    def prefetch(
        self, offsets: Int64[np.ndarray, " ranges"], lengths: Int64[np.ndarray, " ranges"]
    ) -> None:
        """Tell the reader."""
        if self._reader.looks_ahead():
            self._reader.prefetch(offsets, lengths)


@final
class Spool(RowBytes):
    """A temporary file without a name: it goes when nothing refers to it any more."""

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="coredata-")
        os.unlink(name)
        self.file: BinaryIO = os.fdopen(descriptor, "w+b")
        weakref.finalize(self, self.file.close)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes that were written to `file`."""
        parts = []
        while length > 0 and (part := os.pread(self.file.fileno(), length, offset)):
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
        return b"".join(parts)


def version_of(path: str, storage_options: Mapping[str, Any] | None = None) -> str:
    """What changes when the file is written again: size and time, or what its storage says."""
    local = local_path(path)
    if local is not None:
        status = os.stat(local)
        return f"{status.st_size} bytes, {status.st_mtime_ns}"
    remote, key = filesystem(path, storage_options)
    return str(remote.ukey(key))


def absolute(path: str) -> str:
    """The same file, whatever the working directory is."""
    return path if is_url(path) else os.path.abspath(path)
