"""Checks of a token file that read all of it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Shaped
from coredata.formats.errors import (
    DocumentIndexError,
    SequenceLengthError,
    SequencePointerError,
    TokenError,
)
from coredata.formats.indexed import IndexedDataset
from coredata.formats.pair import has_modes
from coredata.formats.paths import get_bin_path, get_idx_path

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Verified:
    """What a sound token file holds."""

    path_prefix: str
    dtype: str
    sequences: int
    documents: int
    tokens: int
    multimodal: bool


def verify_indexed(
    path_prefix: str | os.PathLike[str],
    vocab_size: int | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Verified:
    """Check a token file from end to end; with `vocab_size` also that every id is below it.

    Whether it has modes is found from its size. Memory is bounded.

    Raises:
        MissingFileError: one or both files are missing.
        IndexedDatasetError: the first fault that was found, one class for each kind.
    """
    multimodal = has_modes(path_prefix, storage_options)
    dataset = IndexedDataset(path_prefix, multimodal, storage_options=storage_options)
    verify_structure(dataset)
    if vocab_size is not None:
        _verify_tokens(dataset, vocab_size)
    identity = dataset.identity()
    return Verified(
        path_prefix=dataset.path_prefix,
        dtype=identity["dtype"],
        sequences=identity["sequences"],
        documents=identity["documents"],
        tokens=identity["tokens"],
        multimodal=multimodal,
    )


def verify_structure(dataset: IndexedDataset) -> None:
    """Check every length, pointer and document of an open token file, but no token.

    Raises:
        SequenceLengthError: a negative length.
        SequencePointerError: pointers that decrease, leave gaps, overlap or leave `.bin`; bytes
            of `.bin` that belong to no sequence.
        DocumentIndexError: a document list that is not ascending.
    """
    path = get_idx_path(dataset.path_prefix)
    itemsize = dataset.dtype.itemsize
    expected = 0
    for begin in range(0, len(dataset), _CHUNK):
        lengths = dataset.sequence_lengths[begin : begin + _CHUNK].astype(np.int64)
        pointers = dataset.sequence_pointers[begin : begin + _CHUNK]
        if lengths.min() < 0:
            bad = int(np.argmax(lengths < 0))
            raise SequenceLengthError(
                f"{path}: sequence {begin + bad} has length {lengths[bad]}; lengths are 0 or more"
            )
        ends = expected + np.cumsum(lengths) * itemsize
        starts = ends - lengths * itemsize
        if not np.array_equal(starts, pointers):
            bad = int(np.argmax(starts != pointers))
            raise _bad_pointer(dataset, begin + bad, int(starts[bad]))
        expected = int(ends[-1])
    size = dataset.bin_reader.size
    if expected != size:
        raise SequencePointerError(
            f"{get_bin_path(dataset.path_prefix)} has {size} bytes, but its sequences end at byte "
            f"{expected}; the two files do not belong together, or the writer was interrupted"
        )
    _verify_documents(path, dataset.document_indices)


def _verify_documents(path: str, documents: np.ndarray) -> None:
    for begin in range(0, documents.size - 1, _CHUNK):
        steps = np.diff(documents[begin : begin + _CHUNK + 1])
        if steps.min() < 0:
            bad = begin + int(np.argmax(steps < 0))
            raise DocumentIndexError(
                f"{path}: the document list goes from {documents[bad]} down to "
                f"{documents[bad + 1]} at document {bad}; it must be ascending"
            )


def _bad_pointer(dataset: IndexedDataset, number: int, expected: int) -> SequencePointerError:
    pointers = dataset.sequence_pointers
    found = int(pointers[number])
    size = int(dataset.sequence_lengths[number]) * dataset.dtype.itemsize
    where = f"{get_idx_path(dataset.path_prefix)}: the pointer of sequence {number} is {found}"
    if number and found < pointers[number - 1]:
        return SequencePointerError(
            f"{where}, less than the one before, {pointers[number - 1]}; expected {expected}"
        )
    if found < 0 or found + size > dataset.bin_reader.size:
        return SequencePointerError(
            f"{where}, and its {size} bytes run past the end of the .bin file of "
            f"{dataset.bin_reader.size} bytes; expected {expected}"
        )
    return SequencePointerError(
        f"{where}, but the sequences before it end at {expected}; there is a gap or an overlap"
    )


def _verify_tokens(dataset: IndexedDataset, vocab_size: int) -> None:
    reader, itemsize = dataset.bin_reader, dataset.dtype.itemsize
    for begin in range(0, reader.size // itemsize, _CHUNK):
        count = min(_CHUNK, reader.size // itemsize - begin)
        ids = np.frombuffer(reader.read(begin * itemsize, count * itemsize), dataset.dtype)
        if ids.min() < 0 or ids.max() >= vocab_size:
            bad = int(np.argmax((ids < 0) | (ids >= vocab_size)))
            raise _bad_token(dataset, ids[bad], (begin + bad) * itemsize, vocab_size)


def _bad_token(
    dataset: IndexedDataset, value: Shaped[np.ndarray, ""] | Any, byte: int, vocab_size: int
) -> TokenError:
    pointers, documents = dataset.sequence_pointers, dataset.document_indices
    sequence = int(np.searchsorted(pointers, byte, "right")) - 1
    document = int(np.searchsorted(documents, sequence, "right")) - 1
    offset = (byte - int(pointers[sequence])) // dataset.dtype.itemsize
    return TokenError(
        f"{get_bin_path(dataset.path_prefix)}: document {document}, sequence {sequence}, token "
        f"{offset}: the id {value} is not in a vocabulary of {vocab_size} (0 to {vocab_size - 1}); "
        "the file was written with another tokenizer, or is damaged"
    )
