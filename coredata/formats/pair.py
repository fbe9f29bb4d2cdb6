"""Opening the two files of a prefix together."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata.formats.dtypes import DType
from coredata.formats.index import Index, check_ends, read_header, view_index
from coredata.formats.layout import HEADER, Counts
from coredata.formats.paths import get_bin_path, get_idx_path, missing_file
from coredata.storage import ByteReader, open_reader


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
    idx_reader = open_reader(idx_path, storage_options=options.storage_options)
    reader = open_reader(bin_path, mmap=options.mmap, storage_options=options.storage_options)
    try:
        data = idx_reader.view()
        bin_size = reader.size
    except FileNotFoundError as error:
        raise missing_file(prefix, options.storage_options) from error
    if data is None:
        data = np.frombuffer(idx_reader.read(0, idx_reader.size), np.uint8)
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
