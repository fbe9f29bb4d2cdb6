"""The bytes of an `.idx` file: header, lengths, pointers, documents, modes. Little-endian."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from coredata._typing import Int8, Int32, Int64
from coredata.formats.dtypes import DType

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQQ")
"""Magic, version, dtype code, sequence count, document count: 34 bytes."""

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Counts:
    """How many entries the arrays of an `.idx` file have, and where each array begins."""

    sequences: int
    documents: int
    """Entries of the document list: the number of documents plus one."""
    multimodal: bool = False

    @property
    def pointers_offset(self) -> int:
        """Byte where the sequence pointers begin; the lengths begin after the header."""
        return HEADER.size + 4 * self.sequences

    @property
    def documents_offset(self) -> int:
        """Byte where the document list begins."""
        return self.pointers_offset + 8 * self.sequences

    @property
    def modes_offset(self) -> int:
        """Byte where the modes begin, in a multimodal file."""
        return self.documents_offset + 8 * self.documents

    @property
    def file_size(self) -> int:
        """Size of the whole `.idx` file in bytes."""
        return self.modes_offset + (self.sequences if self.multimodal else 0)


def sequence_pointers(
    lengths: Int32[np.ndarray, " sequences"], itemsize: int, start: int = 0
) -> Int64[np.ndarray, " sequences"]:
    """Byte offset of each sequence in `.bin`: the exclusive prefix sum of its lengths in bytes.

    Computed in 64 bits. `start` is the offset of the first sequence.
    """
    pointers = np.empty(lengths.size, np.int64)
    if lengths.size:
        pointers[0] = 0
        np.cumsum(lengths[:-1], dtype=np.int64, out=pointers[1:])
        pointers *= itemsize
        pointers += start
    return pointers


def pointer_chunks(
    lengths: Int32[np.ndarray, " sequences"], itemsize: int, chunk: int = _CHUNK
) -> Iterator[np.ndarray]:
    """`sequence_pointers` of all lengths, in pieces of at most `chunk` pointers."""
    start = 0
    for begin in range(0, lengths.size, chunk):
        piece = lengths[begin : begin + chunk]
        pointers = sequence_pointers(piece, itemsize, start)
        start = int(pointers[-1]) + int(piece[-1]) * itemsize
        yield pointers


def write_index(
    file: BinaryIO,
    dtype: np.dtype[Any],
    lengths: Int32[np.ndarray, " sequences"],
    document_indices: Int64[np.ndarray, " boundaries"],
    modes: Int8[np.ndarray, " sequences"] | None = None,
) -> None:
    """Write an `.idx` file, array by array, without building it in memory."""
    code = DType.code_from_dtype(dtype)
    file.write(HEADER.pack(MAGIC, VERSION, code, lengths.size, document_indices.size))
    file.write(lengths.data)
    for pointers in pointer_chunks(lengths, dtype.itemsize):
        file.write(pointers.data)
    file.write(document_indices.data)
    if modes is not None:
        file.write(modes.data)
