"""Blocks of objects on a local disk, shared by the processes of a host.

Each block is a file of its own, named after URL, size and version of the object and the number of
the block. It appears by rename and begins with a checksum over its bytes and its name. What a
crash leaves (a file without its bytes, a temporary one) is not used, and removed in time. So
nothing is synchronised, and processes need not know each other.

Files are used and written by anybody; only one process at a time makes room. It looks at what is
really there, and removes what was not used for longest.
"""

import contextlib
import hashlib
import os
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from coredata.storage.file_lock import exclusive
from coredata.storage.options import ReadOptions

_HEADER = struct.Struct("<8sIQ")
_MAGIC = b"cdblock1"
_FULL = 7 / 8
"""Share of the limit down to which room is made."""
_ALLOWANCE = 1 / 128
"""Share of the limit that a process may write before it looks again: 16 processes stay within."""
_STALE = 3600.0

About = tuple[str, int, str]
"""URL, size and version of an object."""


@final
class BlockStore:
    """A directory of blocks.

    Args:
        directory: made if need be.
        limit: bytes that it may take.
        block: bytes in a block.

    Raises:
        OSError: the directory cannot be made or written.
    """

    def __init__(self, directory: str, limit: int, block: int) -> None:
        self._directory = os.path.abspath(directory)
        self._limit = limit
        self._block = block
        self._lock = threading.Lock()
        self._unseen = limit  # look at what is there before the first block is written
        self.failures = 0
        os.makedirs(self._directory, exist_ok=True)
        if not os.access(self._directory, os.W_OK | os.X_OK):
            raise PermissionError(
                f"disk: {self._directory} cannot be written; name a directory that can be, or "
                "set disk=None to keep fetched bytes in memory alone"
            )

    @classmethod
    def of(cls, options: ReadOptions) -> "BlockStore":
        """The store that options name."""
        return cls(str(options.disk), options.disk_bytes, options.block)

    def read(self, about: About, start: int, stop: int) -> list[tuple[int, bytes]]:
        """Where blocks of `start … stop` that are there begin, and their bytes, in order.

        Both ends are multiples of the block, or the end of the object.
        """
        found = []
        for number in range(start // self._block, -(-stop // self._block)):
            data = self._read_block(about, number, min(self._block, stop - number * self._block))
            if data is not None:
                found.append((number * self._block, data))
        return found

    def write(self, about: About, start: int, data: bytes) -> None:
        """Keep bytes from `start` on, which is a multiple of the block.

        What cannot be written is not kept: it is counted in `failures`, and no error.
        """
        for at in range(0, len(data), self._block):
            piece = data[at : at + self._block]
            try:
                self._make_room(len(piece))
                self._write_block(about, (start + at) // self._block, piece)
            except OSError:
                self.failures += 1
                return

    def _read_block(self, about: About, number: int, length: int) -> bytes | None:
        path = self._path(about, number)
        try:
            with open(path, "rb", buffering=0) as file:
                content = file.read(_HEADER.size + length + 1)
        except OSError:
            return None
        head, data = content[: _HEADER.size], content[_HEADER.size :]
        if len(data) == length and head == _header(path, data):
            with contextlib.suppress(OSError):
                os.utime(path)
            return data
        self._discard(path)
        return None

    def _write_block(self, about: About, number: int, data: bytes) -> None:
        path = self._path(about, number)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{uuid.uuid4().hex[:12]}.tmp"
        try:
            with open(temporary, "xb", buffering=0) as file:
                file.write(_header(path, data))
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            self._discard(temporary)
            raise

    def _path(self, about: About, number: int) -> str:
        text = "\n".join([*map(str, about), str(self._block)])
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
        return os.path.join(self._directory, f"{number % 256:02x}", f"{name}-{number}")

    def _make_room(self, more: int) -> None:
        """Now and then, remove what is too much."""
        with self._lock:
            self._unseen += more + _HEADER.size
            if self._unseen <= self._limit * _ALLOWANCE:
                return
            self._unseen = more + _HEADER.size
        with exclusive(os.path.join(self._directory, "lock")):
            found = sorted(self._files(), key=lambda file: file.used)
            total = sum(file.size for file in found)
            for file in found:
                if total <= self._limit * _FULL:
                    return
                self._discard(file.path)
                total -= file.size

    def _files(self) -> Iterator["_File"]:
        """All blocks; temporary files that nobody writes any more are removed on the way."""
        with os.scandir(self._directory) as entries:
            directories = [entry.path for entry in entries if entry.is_dir()]
        for directory in directories:
            with os.scandir(directory) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat()
                        if entry.name.endswith(".tmp") and time.time() - status.st_mtime > _STALE:
                            self._discard(entry.path)
                        else:
                            yield _File(entry.path, status.st_size, status.st_mtime)

    def _discard(self, path: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(path)


@dataclass(frozen=True)
class _File:
    path: str
    size: int
    used: float


def _header(path: str, data: bytes) -> bytes:
    checksum = zlib.crc32(data, zlib.crc32(os.path.basename(path).encode()))
    return _HEADER.pack(_MAGIC, checksum, len(data))
