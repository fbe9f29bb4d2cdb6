"""Checksums of the blocks of a file, so that a flipped byte in any part of it is found.

They stand in a side file, all little-endian:

    0   8  magic, "CDCRC32" and a zero byte
    8   4  version, uint32: 1
    12  4  bytes in a block, uint32
    16  8  bytes in the file, uint64
    24  4  CRC-32 of the index that belongs to the file, uint32
    28  4  CRC-32 of all that follows, uint32
    32  4  each: CRC-32 of a block, uint32; the last block may be short

The CRC-32 is that of zlib, gzip and PNG: it runs at more than a GB a second everywhere, needs no
package, and finds every damage that lies within 4 bytes. It defends against nobody.
"""

import struct
import zlib
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from coredata._typing import UInt8, UInt32

BLOCK = 2048
"""Bytes in a block. Reads begin and end at blocks, so that small ones waste little; the side file
has a 512th of the size."""

_MAGIC = b"CDCRC32\0"
_VERSION = 1
_HEADER = struct.Struct("<8sIIQII")
_LARGEST = 1 << 24


class ChecksumError(OSError):
    """Bytes that are not those that were written. Its text names file, block and bytes."""


class ChecksumFileError(ValueError):
    """A side file that is no side file, or is damaged itself, or belongs to another file."""


@dataclass(frozen=True)
class BlockChecksums:
    """The checksums of one file.

    Attributes:
        block: bytes in a block.
        size: bytes in the file.
        index: CRC-32 of the index that belongs to it.
        values: CRC-32 of each block.
    """

    block: int
    size: int
    index: int
    values: UInt32[np.ndarray, " blocks"]

    def aligned(self, start: int, stop: int) -> tuple[int, int]:
        """The smallest range of whole blocks around bytes `start … stop`."""
        return start // self.block * self.block, min(-(-stop // self.block) * self.block, self.size)

    def bad_block(self, start: int, data: bytes | memoryview) -> int | None:
        """The first block of `data` that is not as it was written; None if all are.

        `data` are the bytes from `start` of the file on, and whole blocks (see `aligned`).

        Raises:
            ValueError: they are not.
        """
        stop = start + len(data)
        if self.aligned(start, stop) != (start, stop):
            raise ValueError(
                f"bytes {start} to {stop} are not whole blocks of {self.block} bytes in a file of "
                f"{self.size}"
            )
        view = memoryview(data)
        first = start // self.block
        for number, value in enumerate(self.values[first : -(-stop // self.block)].tolist()):
            if zlib.crc32(view[number * self.block : (number + 1) * self.block]) != value:
                return first + number
        return None

    def check(self, path: str, start: int, data: bytes | memoryview) -> None:
        """Raise ChecksumError unless `data` are the bytes of `path` from `start` on.

        Raises:
            ChecksumError: a block is not as it was written.
            ValueError: they are not whole blocks.
        """
        bad = self.bad_block(start, data)
        if bad is not None:
            raise ChecksumError(
                f"{path}: block {bad} (bytes {bad * self.block} to "
                f"{min((bad + 1) * self.block, self.size)}) does not have the checksum that was "
                "written with it"
            )

    def stored(self) -> tuple[bytes, memoryview]:
        """The side file: its header, and what follows."""
        values = np.ascontiguousarray(self.values, "<u4").view(np.uint8).data
        own = zlib.crc32(values)
        header = _HEADER.pack(_MAGIC, _VERSION, self.block, self.size, self.index, own)
        return header, values


def read_checksums(
    path: str, data: UInt8[np.ndarray, " bytes"], size: int, thorough: bool = False
) -> BlockChecksums:
    """The checksums in a side file, as a view of its bytes.

    Args:
        path: of the side file, for errors.
        data: its bytes.
        size: bytes in the file that it is to belong to.
        thorough: also look whether the checksums themselves are damaged (one pass over them).

    Raises:
        ChecksumFileError: it is not what it should be.
    """
    head = data[: _HEADER.size].tobytes()
    if len(head) < _HEADER.size or not head.startswith(_MAGIC):
        raise ChecksumFileError(
            f"{path} is not a file of checksums: it begins with {head[: len(_MAGIC)]!r}, not with "
            f"{_MAGIC!r}; write it again"
        )
    _, version, block, written_for, index, own = _HEADER.unpack(head)
    if version != _VERSION:
        raise ChecksumFileError(
            f"{path} has version {version}; only version {_VERSION} can be read"
        )
    blocks = -(-written_for // block) if 0 < block <= _LARGEST else -1
    if data.size != _HEADER.size + 4 * blocks:
        raise ChecksumFileError(
            f"{path} has {data.size} bytes, which are not the checksums of {written_for} bytes in "
            f"blocks of {block}; it is damaged: write it again"
        )
    if written_for != size:
        raise ChecksumFileError(
            f"{path} holds the checksums of a file of {written_for} bytes, and the file has "
            f"{size}; they do not belong together: write the checksums again"
        )
    if thorough and zlib.crc32(data[_HEADER.size :].data) != own:
        raise ChecksumFileError(f"{path}: its own checksum is wrong; it is damaged: write it again")
    return BlockChecksums(block, size, index, np.frombuffer(data, "<u4", blocks, _HEADER.size))


@final
class GrowingChecksums:
    """The checksums of a file that is being written; 4 bytes of memory for each block."""

    def __init__(self, block: int = BLOCK) -> None:
        if not 0 < block <= _LARGEST:
            raise ValueError(f"block: got {block}, need 1 to {_LARGEST} bytes, such as {BLOCK}")
        self._block = block
        self._values = np.empty(1024, np.uint32)
        self._size = 0
        self._last = 0

    def update(self, data: Any) -> None:
        """Add the bytes that are written next."""
        view = memoryview(data)
        if view.nbytes == 0:
            return
        view = view.cast("B")
        begin = 0
        while begin < len(view):
            number, within = divmod(self._size, self._block)
            piece = view[begin : begin + self._block - within]
            if number == self._values.size:
                self._values = np.resize(self._values, 2 * self._values.size)
            self._last = zlib.crc32(piece, self._last if within else 0)
            self._values[number] = self._last
            self._size += len(piece)
            begin += len(piece)

    def finish(self, index: int) -> BlockChecksums:
        """The checksums so far, together with the CRC-32 of the index."""
        blocks = -(-self._size // self._block)
        return BlockChecksums(self._block, self._size, index, self._values[:blocks].copy())
