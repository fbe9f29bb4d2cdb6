"""Checksums of a token file, in `PREFIX.crc` beside it: written afterwards, and compared."""

import io
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, final

import numpy as np

from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.storage import (
    BLOCK,
    BlockChecksums,
    ByteReader,
    ChecksumError,
    GrowingChecksums,
    atomic_write,
    checksum_path,
    open_checksums,
    open_reader,
    with_read_options,
)

_PIECE = 1 << 22


@final
class CountedFile(io.RawIOBase):
    """Passes bytes on to a file, which stays open, and takes their CRC-32."""

    mode = "wb"

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.name = file.name
        self.checksum = 0

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any) -> int:
        """Write all of it."""
        self._file.write(data)
        self.checksum = zlib.crc32(data, self.checksum)
        return memoryview(data).nbytes


def write_block_checksums(
    path_prefix: str | os.PathLike[str],
    block: int = BLOCK,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """Write the checksums of an existing token file, as it is now, to `PREFIX.crc`; its path.

    One pass over both files, in bounded memory (4 bytes a block). An older `.crc` is replaced.

    Raises:
        FileNotFoundError: a file of the pair is missing.
        ValueError: a block size that is out of range.
    """
    growing = GrowingChecksums(block)
    for _, piece in _pieces(get_bin_path(path_prefix), storage_options):
        growing.update(piece)
    checksums = growing.finish(_index_checksum(path_prefix, storage_options))
    target = checksum_path(get_bin_path(path_prefix))
    with atomic_write(target, storage_options) as file:
        for part in checksums.stored():
            file.write(part)
    return target


def verify_block_checksums(
    path_prefix: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None
) -> BlockChecksums:
    """Compare a token file, from end to end, with the checksums in `PREFIX.crc`, and return these.

    Raises:
        FileNotFoundError: a file of the pair is missing.
        ChecksumFileError: `PREFIX.crc` is missing or damaged, or belongs to another file.
        ChecksumError: a block of `.bin`, or `.idx`, is not as it was written; the text names it.
    """
    path = get_bin_path(path_prefix)
    size = _reader(path, storage_options).size
    checksums = open_checksums(path, size, storage_options, thorough=True)
    found = _index_checksum(path_prefix, storage_options)
    if found != checksums.index:
        raise ChecksumError(
            f"{get_idx_path(path_prefix)} has the checksum {found:08x}, and {checksums.index:08x} "
            "was written with it; it is damaged, or belongs to another file"
        )
    whole = max(_PIECE // checksums.block, 1) * checksums.block
    for start, piece in _pieces(path, storage_options, whole):
        checksums.check(path, start, piece)
    return checksums


def _index_checksum(
    path_prefix: str | os.PathLike[str], storage_options: Mapping[str, Any] | None
) -> int:
    checksum = 0
    for _, piece in _pieces(get_idx_path(path_prefix), storage_options):
        checksum = zlib.crc32(piece, checksum)
    return checksum


def _pieces(
    path: str, storage_options: Mapping[str, Any] | None, size: int = _PIECE
) -> Iterator[tuple[int, memoryview]]:
    """A file from front to back: where each piece begins, and its bytes."""
    reader = _reader(path, storage_options)
    for begin in range(0, reader.size, size):
        piece = reader.read(begin, min(size, reader.size - begin))
        yield begin, np.frombuffer(piece, np.uint8).data


def _reader(path: str, storage_options: Mapping[str, Any] | None) -> ByteReader:
    """Reads by position; what it reads is compared here, and not on the way."""
    unchecked = with_read_options(storage_options, checksums=False)
    return open_reader(path, mmap=False, storage_options=unchecked)
