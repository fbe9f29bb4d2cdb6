"""What is wrong with a token file by the checksums beside it, and in which document."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coredata.formats.checksums import verify_block_checksums
from coredata.formats.errors import IndexedDatasetError
from coredata.formats.indexed import IndexedDataset
from coredata.formats.pair import has_modes
from coredata.formats.paths import get_bin_path
from coredata.storage import (
    BlockChecksums,
    ChecksumError,
    ChecksumFileError,
    checksum_path,
    exists,
    open_checksums,
    open_reader,
    with_read_options,
)

_PIECE = 1 << 22


def has_checksums(path_prefix: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Whether `PREFIX.crc` exists."""
    return exists(checksum_path(get_bin_path(path_prefix)), storage_options)


def find_checksum_fault(
    path_prefix: str, storage_options: Mapping[str, Any] | None = None
) -> ChecksumError | ChecksumFileError | None:
    """Compare both files with `PREFIX.crc`; the first block that is wrong, and whose it is.

    Raises:
        FileNotFoundError: a file of the pair is missing.
    """
    try:
        verify_block_checksums(path_prefix, storage_options=storage_options)
    except ChecksumFileError as error:
        return error
    except ChecksumError as error:
        where = _document_of_bad_block(path_prefix, storage_options)
        return ChecksumError(f"{error}{where}")
    return None


def _document_of_bad_block(path_prefix: str, storage_options: Mapping[str, Any] | None) -> str:
    """Document and sequence in which the first bad block of `.bin` begins, in words."""
    path = get_bin_path(path_prefix)
    unchecked = with_read_options(storage_options, checksums=False)
    reader = open_reader(path, mmap=False, storage_options=unchecked)
    checksums = open_checksums(path, reader.size, storage_options, thorough=True)
    size = max(_PIECE // checksums.block, 1) * checksums.block
    for start in range(0, reader.size, size):
        piece = reader.read(start, min(size, reader.size - start))
        bad = checksums.bad_block(start, np.frombuffer(piece, np.uint8).data)
        if bad is not None:
            return _place(path_prefix, checksums, bad, unchecked)
    return ""


def _place(
    path_prefix: str, checksums: BlockChecksums, block: int, options: Mapping[str, Any] | None
) -> str:
    try:
        dataset = IndexedDataset(
            path_prefix, has_modes(path_prefix, options), storage_options=options
        )
    except IndexedDatasetError:
        return ""
    first, last = block * checksums.block, (block + 1) * checksums.block - 1
    sequences = np.searchsorted(dataset.sequence_pointers, [first, last], "right") - 1
    documents = np.searchsorted(dataset.document_indices, sequences, "right") - 1
    text = f"document {documents[0]}, sequence {sequences[0]}"
    if sequences[1] > sequences[0]:
        text += f", to document {documents[1]}, sequence {sequences[1]}"
    return f". It holds tokens of {text}"
