"""Opening the two files of a prefix together."""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import UInt8
from coredata.formats.dtypes import DType
from coredata.formats.index import Index, check_ends, read_header, view_index
from coredata.formats.layout import HEADER, Counts
from coredata.formats.paths import get_bin_path, get_idx_path, missing_file
from coredata.storage import (
    ByteReader,
    RangedObject,
    local_path,
    open_copied,
    open_reader,
    read_options,
)


@dataclass(frozen=True)
class Options:
    """All that a reader is before it opens its files, and all that is pickled of it."""

    path_prefix: str
    multimodal: bool
    mmap: bool
    storage_options: Mapping[str, Any] | None
    sequences_per_dataset: tuple[int, int] | None
    dtype_code: int | None


def known_counts(
    sequences_per_dataset: Sequence[int] | None, dtype_code: int | None
) -> tuple[int, int] | None:
    """The counts that a caller knows in advance, checked; None when they are not known.

    Raises:
        ValueError: not a pair of counts, or no dtype code beside them.
    """
    if sequences_per_dataset is None:
        return None
    if len(sequences_per_dataset) != 2 or min(sequences_per_dataset) < 0:
        raise ValueError(
            f"sequences_per_dataset is {sequences_per_dataset!r}; it must be the sequence count "
            "and the document count of this prefix, for example [1000, 1001]"
        )
    if dtype_code is None:
        raise ValueError(
            "sequences_per_dataset needs dtype_code too, since the header is not read; "
            f"for example dtype_code={DType.uint16.value} for uint16"
        )
    sequences, documents = sequences_per_dataset
    return int(sequences), int(documents)


def open_pair(options: Options) -> tuple[Index, ByteReader]:
    """Open both files, and check what takes constant time.

    With counts known in advance the header is not read and the arrays are not looked at.

    Raises:
        MissingFileError: one or both files are missing.
        IndexedDatasetError: the files are not what they should be.
    """
    prefix = options.path_prefix
    idx_path, bin_path = get_idx_path(prefix), get_bin_path(prefix)
    reader = open_reader(bin_path, mmap=options.mmap, storage_options=options.storage_options)
    try:
        checksum = _index_checksum(reader, options.storage_options)
        data = _content(idx_path, options.storage_options, checksum)
        bin_size = _size(bin_path, reader)
    except FileNotFoundError as error:
        raise missing_file(prefix, options.storage_options) from error
    if options.sequences_per_dataset is not None and options.dtype_code is not None:
        sequences, documents = options.sequences_per_dataset
        dtype = DType.dtype_from_code(options.dtype_code)
        return view_index(
            idx_path, data, dtype, Counts(sequences, documents, options.multimodal)
        ), reader
    dtype, sequences, documents = read_header(idx_path, data)
    index = view_index(idx_path, data, dtype, Counts(sequences, documents, options.multimodal))
    check_ends(idx_path, index, bin_path, bin_size)
    return index, reader


def _index_checksum(reader: ByteReader, storage_options: Mapping[str, Any] | None) -> int | None:
    """The checksum that the `.idx` file must have, where checksums are asked for."""
    if not isinstance(reader, RangedObject) or not read_options(storage_options).checksums:
        return None
    return None if reader.checksums is None else reader.checksums.index


def _content(
    path: str, storage_options: Mapping[str, Any] | None, checksum: int | None
) -> UInt8[np.ndarray, " bytes"]:
    """The bytes of an `.idx` file: read if it is local and small, else mapped, or a copy mapped.

    A small mapping costs more than the bytes: three more system calls, a page, a descriptor.
    """
    local = local_path(path)
    if local is not None:
        descriptor = os.open(local, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if status.st_size <= _SMALL and stat.S_ISREG(status.st_mode):
                return np.frombuffer(os.read(descriptor, _SMALL), np.uint8)
        finally:
            os.close(descriptor)
    return open_copied(path, storage_options, checksum).view()


def _size(path: str, reader: ByteReader) -> int:
    """Size of a `.bin` file, which is not opened before the first read if it is local.

    Raises:
        PermissionError: it may not be read.
    """
    local = local_path(path)
    if local is None:
        return reader.size
    status = os.stat(local)
    if stat.S_ISREG(status.st_mode) and os.access(local, os.R_OK):
        return status.st_size
    return reader.size  # which says what is wrong with it


_SMALL = 1 << 16


def has_modes(
    path_prefix: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> bool:
    """Whether the sequences of a token file have modes, which only the size of `.idx` shows.

    A file without sequences has none.

    Raises:
        MissingFileError: the `.idx` file is missing.
        IndexedDatasetError: its header is not what it should be.
    """
    idx_path = get_idx_path(path_prefix)
    reader = open_reader(idx_path, storage_options=storage_options)
    try:
        size = reader.size
    except FileNotFoundError as error:
        raise missing_file(os.fspath(path_prefix), storage_options) from error
    head = np.frombuffer(reader.read(0, min(size, HEADER.size)), np.uint8)
    _, sequences, documents = read_header(idx_path, head)
    return sequences > 0 and size == Counts(sequences, documents, multimodal=True).file_size
