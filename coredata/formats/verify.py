"""Checks of a token file that read all of it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata.formats.errors import (
    DocumentIndexError,
    IndexedDatasetError,
    SequenceLengthError,
    SequencePointerError,
    TokenError,
)
from coredata.formats.indexed import IndexedDataset
from coredata.formats.pair import has_modes
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.formats.verify_scan import (
    NEGATIVE_LENGTH,
    SOUND,
    Progress,
    aligned,
    first_bad_sequence,
    first_descent,
    scan_tokens,
)
from coredata.storage import local_path, open_reader

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


@dataclass(frozen=True)
class PairFaults:
    """What is wrong with a token file: the first fault of each kind.

    Attributes:
        path_prefix: which file.
        facts: what it holds; None if it cannot be opened.
        faults: one error for each kind of fault, in the order in which they were looked for.
    """

    path_prefix: str
    facts: Verified | None
    faults: tuple[IndexedDatasetError, ...]


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
    found = find_pair_faults(path_prefix, vocab_size, storage_options=storage_options, most=1)
    if found.facts is None or found.faults:
        raise found.faults[0]
    return found.facts


def find_pair_faults(
    path_prefix: str | os.PathLike[str],
    vocab_size: int | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    most: int | None = None,
) -> PairFaults:
    """Look for faults of a token file: in its sequences, its documents, its ids.

    Args:
        path_prefix: the pair of files, without `.bin` and `.idx`.
        vocab_size: every id must be below it; None leaves the tokens unread.
        storage_options: for URLs.
        progress: told how many bytes of tokens were looked at.
        most: stop after so many faults.
    """
    prefix = os.fspath(path_prefix)
    try:
        multimodal = has_modes(prefix, storage_options)
        dataset = IndexedDataset(prefix, multimodal, storage_options=storage_options)
    except IndexedDatasetError as error:
        return PairFaults(prefix, None, (error,))
    checks: list[Callable[[], None]] = [
        lambda: _check_sequences(dataset),
        lambda: _check_documents(dataset),
    ]
    if vocab_size is not None:
        size = vocab_size
        checks.append(lambda: _check_tokens(dataset, size, storage_options, progress))
    faults: list[IndexedDatasetError] = []
    for check in checks:
        try:
            check()
        except IndexedDatasetError as error:
            faults.append(error)
            if len(faults) == most:
                break
    identity = dataset.identity()
    facts = Verified(
        path_prefix=prefix,
        dtype=identity["dtype"],
        sequences=identity["sequences"],
        documents=identity["documents"],
        tokens=identity["tokens"],
        multimodal=multimodal,
    )
    return PairFaults(prefix, facts, tuple(faults))


def verify_structure(dataset: IndexedDataset) -> None:
    """Check every length, pointer and document of an open token file, but no token.

    Raises:
        SequenceLengthError: a negative length.
        SequencePointerError: pointers that decrease, leave gaps, overlap or leave `.bin`; bytes
            of `.bin` that belong to no sequence.
        DocumentIndexError: a document list that is not ascending.
    """
    _check_sequences(dataset)
    _check_documents(dataset)


def _check_sequences(dataset: IndexedDataset) -> None:
    path = get_idx_path(dataset.path_prefix)
    expected = 0
    for begin in range(0, len(dataset), _CHUNK):
        lengths = aligned(dataset.sequence_lengths[begin : begin + _CHUNK])
        pointers = aligned(dataset.sequence_pointers[begin : begin + _CHUNK])
        fault, number, expected = first_bad_sequence(
            lengths, pointers, np.int64(dataset.dtype.itemsize), np.int64(expected)
        )
        if fault == NEGATIVE_LENGTH:
            raise SequenceLengthError(
                f"{path}: sequence {begin + number} has length {lengths[number]}; lengths are 0 "
                "or more"
            )
        if fault != SOUND:
            raise _bad_pointer(dataset, begin + int(number), int(expected))
    size = dataset.bin_reader.size
    if expected != size:
        raise SequencePointerError(
            f"{get_bin_path(dataset.path_prefix)} has {size} bytes, but its sequences end at byte "
            f"{expected}; the two files do not belong together, or the writer was interrupted"
        )


def _check_documents(dataset: IndexedDataset) -> None:
    documents = dataset.document_indices
    for begin in range(0, documents.size - 1, _CHUNK):
        bad = int(first_descent(aligned(documents[begin : begin + _CHUNK + 1])))
        if bad >= 0:
            bad += begin
            raise DocumentIndexError(
                f"{get_idx_path(dataset.path_prefix)}: the document list goes from "
                f"{documents[bad]} down to {documents[bad + 1]} at document {bad}; it must be "
                "ascending"
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


def _check_tokens(
    dataset: IndexedDataset,
    vocab_size: int,
    storage_options: Mapping[str, Any] | None,
    progress: Progress | None,
) -> None:
    path, dtype = get_bin_path(dataset.path_prefix), dataset.dtype
    if dtype.kind == "f":
        raise TokenError(
            f"{path}: the values are {dtype.name}, which are no ids of a vocabulary; check it "
            "without a vocabulary size"
        )
    reader = dataset.bin_reader
    if local_path(path) is not None:  # reading by position is faster than faulting pages in
        reader = open_reader(path, mmap=False, storage_options=storage_options)
    scan = scan_tokens(reader, dtype, vocab_size, progress, _CHUNK * dtype.itemsize)
    if scan.outside:
        raise _bad_token(dataset, scan.first_outside, scan.outside, vocab_size)


def _bad_token(dataset: IndexedDataset, place: int, count: int, vocab_size: int) -> TokenError:
    pointers, documents = dataset.sequence_pointers, dataset.document_indices
    byte = place * dataset.dtype.itemsize
    value = np.frombuffer(dataset.bin_reader.read(byte, dataset.dtype.itemsize), dataset.dtype)[0]
    sequence = int(np.searchsorted(pointers, byte, "right")) - 1
    document = int(np.searchsorted(documents, sequence, "right")) - 1
    offset = (byte - int(pointers[sequence])) // dataset.dtype.itemsize
    more = f". {count} ids of the file are outside it" if count > 1 else ""
    return TokenError(
        f"{get_bin_path(dataset.path_prefix)}: document {document}, sequence {sequence}, token "
        f"{offset}: the id {value} is not in a vocabulary of {vocab_size} (0 to {vocab_size - 1}); "
        f"the file was written with another tokenizer, or is damaged{more}"
    )
