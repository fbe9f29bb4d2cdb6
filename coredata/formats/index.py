"""An `.idx` file as arrays that view its bytes, with the checks that take constant time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Int8, Int32, Int64, UInt8
from coredata.formats.dtypes import DType
from coredata.formats.errors import (
    DocumentIndexError,
    DTypeError,
    IndexSizeError,
    MagicError,
    SequencePointerError,
    VersionError,
)
from coredata.formats.layout import HEADER, MAGIC, VERSION, Counts


@dataclass(frozen=True)
class Index:
    """What an `.idx` file says. The arrays are read-only views of the file, and not aligned."""

    dtype: np.dtype[Any]
    sequence_lengths: Int32[np.ndarray, " sequences"]
    sequence_pointers: Int64[np.ndarray, " sequences"]
    document_indices: Int64[np.ndarray, " boundaries"]
    sequence_modes: Int8[np.ndarray, " sequences"] | None

    @property
    def end(self) -> int:
        """Byte of `.bin` at which the last sequence ends."""
        if self.sequence_lengths.size == 0:
            return 0
        last = int(self.sequence_lengths[-1])
        return int(self.sequence_pointers[-1]) + last * self.dtype.itemsize


def read_header(path: str, data: UInt8[np.ndarray, " bytes"]) -> tuple[np.dtype[Any], int, int]:
    """The dtype, sequence count and document count that the file names.

    Raises:
        MagicError, IndexSizeError, VersionError, DTypeError: the header is not as it should be.
    """
    head = data[: HEADER.size].tobytes()
    if head[: len(MAGIC)] != MAGIC[: len(head)] or not head:
        raise MagicError(
            f"{path} is not an index file: it should begin with {MAGIC!r}, but {_looks_like(head)}"
        )
    if len(head) < HEADER.size:
        raise IndexSizeError(
            f"{path} has {len(head)} bytes, and an index file at least {HEADER.size}: it was cut "
            "off; copy or write it again"
        )
    _, version, code, sequences, documents = HEADER.unpack(head)
    if version != VERSION:
        raise VersionError(f"{path} has version {version}; only version {VERSION} can be read")
    try:
        dtype = DType.dtype_from_code(code)
    except DTypeError as error:
        raise DTypeError(f"{path}: {error}") from None
    return dtype, sequences, documents


def view_index(
    path: str, data: UInt8[np.ndarray, " bytes"], dtype: np.dtype[Any], counts: Counts
) -> Index:
    """The arrays of the file, as views of its bytes.

    Raises:
        IndexSizeError: the size of the file is not the one that the counts imply.
    """
    if data.size != counts.file_size:
        raise IndexSizeError(_wrong_size(path, data.size, counts))
    n = counts.sequences
    return Index(
        dtype=dtype,
        sequence_lengths=np.frombuffer(data, np.int32, n, HEADER.size),
        sequence_pointers=np.frombuffer(data, np.int64, n, counts.pointers_offset),
        document_indices=np.frombuffer(data, np.int64, counts.documents, counts.documents_offset),
        sequence_modes=(
            np.frombuffer(data, np.int8, n, counts.modes_offset) if counts.multimodal else None
        ),
    )


def check_ends(idx_path: str, index: Index, bin_path: str, bin_size: int) -> None:
    """Check the first and last entries of the arrays against each other and the `.bin` file.

    Raises:
        DocumentIndexError: the document list is empty, or has wrong ends.
        SequencePointerError: the last sequence runs past the end of `.bin`.
    """
    documents, sequences = index.document_indices, index.sequence_lengths.size
    if documents.size == 0:
        raise DocumentIndexError(
            f"{idx_path} has an empty document list; it has at least one entry, 0"
        )
    if documents[0] != 0:
        raise DocumentIndexError(
            f"{idx_path}: the document list starts at {documents[0]}, not at 0; write it again"
        )
    if documents[-1] != sequences:
        raise DocumentIndexError(
            f"{idx_path}: the document list ends at {documents[-1]}, but there are {sequences} "
            "sequences; the last document was not ended, or the file is damaged: write it again"
        )
    if index.end > bin_size:
        raise SequencePointerError(
            f"{idx_path}: the last sequence ends at byte {index.end}, but {bin_path} has "
            f"{bin_size} bytes; the .bin file was cut off, or belongs to another .idx file"
        )


def _wrong_size(path: str, size: int, counts: Counts) -> str:
    other = Counts(counts.sequences, counts.documents, not counts.multimodal)
    implied = (
        f"{path} has {size} bytes, but {counts.sequences} sequences and {counts.documents} "
        f"document entries take {counts.file_size}"
    )
    if size == other.file_size and counts.sequences:
        if counts.multimodal:
            return f"{implied} with modes; it has no modes: open it with multimodal=False"
        return f"{implied} without modes; it has modes: open it with multimodal=True"
    with_modes = " with modes" if counts.multimodal else ""
    state = "cut off" if size < counts.file_size else "longer than it should be"
    return f"{implied}{with_modes}: it is {state}, or the counts are wrong; copy or write it again"


_SIGNATURES = [
    (b"", "it is empty (0 bytes): it was never written, or is still being written"),
    (b"TNTIDX\x00\x00", "it is in the older TNTIDX index format; write the dataset again"),
    (b"\x1f\x8b", "it is compressed with gzip; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd; unpack it first"),
    (b"PK\x03\x04", "it is a zip archive; unpack it first"),
    (b"PAR1", "it is a parquet file; preprocess it first"),
    (b"version https://git-lfs", "it is a Git LFS pointer; fetch the file with git lfs pull"),
]


def _looks_like(head: bytes) -> str:
    for signature, meaning in _SIGNATURES:
        if head.startswith(signature) if signature else not head:
            return meaning
    if not head.strip(b"\x00"):
        return "it begins with zeros: space was reserved for it, but it was never written"
    text = head.decode("utf-8", "ignore")
    if len(text.encode()) + 3 >= len(head) and "".join(text.split()).isprintable():
        return f"it looks like text: {text!r}"
    return f"it begins with {head[: len(MAGIC)]!r}"
