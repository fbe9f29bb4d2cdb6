"""Mending the index of a token file, where what it should say follows from what is there.

Only `.idx` files are written, never `.bin`. The old one is kept under another name.
"""

import io
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata.formats.checksums import CountedFile
from coredata.formats.errors import IndexedDatasetError, MissingFileError
from coredata.formats.index import read_header
from coredata.formats.layout import HEADER, Counts, write_index
from coredata.formats.pair import has_modes
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.formats.repair_doubt import dtype_doubt
from coredata.formats.repair_scan import LONGEST, document_lengths, ends_with
from coredata.formats.verify import find_pair_faults
from coredata.storage import (
    ChecksumFileError,
    begin_write,
    checksum_path,
    exists,
    local_path,
    open_checksums,
    open_reader,
)


@dataclass(frozen=True)
class Repaired:
    """What was done.

    Attributes:
        path: the index that was written.
        kept: where the old one is; None if there was none.
        what: in words.
    """

    path: str
    kept: str | None
    what: str


class NotRepairableError(IndexedDatasetError):
    """A fault that what is there does not say how to mend."""


def repair_index(
    path_prefix: str | os.PathLike[str],
    *,
    eod: int | None = None,
    dtype: Any = None,
    vocab_size: int | None = None,
) -> Repaired:
    """Write the index that a token file should have, if that is certain.

    - The lengths are whole and add up to the `.bin` file: pointers follow from them. Of the
      document list, what is there is kept; boundaries for the sequences beyond it are added: one
      after each sequence if all documents so far have one; or with `eod`, after each sequence that
      ends in it; or a single one, if a single sequence is left.
    - There is no index: with `eod` and `dtype`, each document ends in `eod`, and so does the file.
      If there are checksums beside it, the index must have its own; if not, the dtype is taken as
      given unless the ids speak against it.

    Args:
        path_prefix: the pair, without `.bin` and `.idx`; a local path.
        eod: id that ends documents.
        dtype: of the tokens, where no index says it.
        vocab_size: where no index says the dtype, ids must be below it, and the dtype must be
            large enough for it; a wrong dtype seldom passes.

    Raises:
        NotRepairableError: it is not certain; the text says why and what to give.
        MissingFileError: `.bin` is missing.
        FileExistsError: an index that is sound.
    """
    prefix = os.fspath(path_prefix)
    if local_path(prefix) is None:
        raise NotRepairableError(
            f"{prefix}: only local files are repaired; copy the pair here, repair it, copy the "
            ".idx file back"
        )
    if not exists(get_bin_path(prefix)):
        raise MissingFileError(f"{get_bin_path(prefix)} does not exist; its tokens are lost")
    if not exists(get_idx_path(prefix)):
        return _index_from_tokens(prefix, eod, dtype, vocab_size)
    if not find_pair_faults(prefix, most=1).faults:
        raise FileExistsError(f"{get_idx_path(prefix)} is sound; there is nothing to repair")
    return _index_from_lengths(prefix, eod)


def _index_from_lengths(prefix: str, eod: int | None) -> Repaired:
    path, bin_path = get_idx_path(prefix), get_bin_path(prefix)
    reader = open_reader(path, mmap=False)
    data = np.frombuffer(reader.read(0, reader.size), np.uint8)
    dtype, sequences, entries = read_header(path, data)
    counts = Counts(sequences, entries)
    if data.size < counts.pointers_offset:
        raise NotRepairableError(
            f"{path} ends at byte {data.size}, among its {sequences} sequence lengths (to byte "
            f"{counts.pointers_offset}), which cannot be found again. Write it again; or move it "
            "away and give --eod, if documents end in it"
        )
    if data.size > counts.file_size and not _has_modes(prefix):
        raise NotRepairableError(
            f"{path} has {data.size} bytes, more than the {counts.file_size} that its counts "
            "imply; it is unclear what the rest is. Copy or write it again"
        )
    lengths = np.frombuffer(data, np.int32, sequences, HEADER.size).copy()
    size = open_reader(bin_path).size
    total = int(lengths.sum(dtype=np.int64)) * dtype.itemsize
    if total != size or (lengths < 0).any():
        raise NotRepairableError(
            f"{path}: the lengths add up to {total} bytes, but {bin_path} has {size}; one of the "
            "two is cut off or belongs to another file. Copy or write it again"
        )
    listed = _listed_documents(data, counts)
    documents = _complete(prefix, listed, lengths, dtype, eod)
    modes = None
    if _has_modes(prefix):
        modes = np.frombuffer(data, np.int8, sequences, counts.modes_offset)
    added = documents.size - listed.size
    kept = _put(prefix, dtype, lengths, documents, modes)
    return Repaired(
        path,
        kept,
        f"wrote pointers from the lengths of {sequences} sequences, and the document list of "
        f"{documents.size} entries, of which {added} {'was' if added == 1 else 'were'} missing",
    )


def _has_modes(prefix: str) -> bool:
    try:
        return has_modes(prefix)
    except IndexedDatasetError:
        return False


def _listed_documents(data: np.ndarray, counts: Counts) -> np.ndarray:
    """The document boundaries that are there and can be: from 0, ascending, within the file."""
    there = min(max(data.size - counts.documents_offset, 0) // 8, counts.documents)
    if there == 0:
        return np.zeros(1, np.int64)
    listed = np.frombuffer(data, np.int64, there, counts.documents_offset)
    if listed[0] != 0:
        return np.zeros(1, np.int64)
    sound = np.flatnonzero((np.diff(listed) < 0) | (listed[1:] > counts.sequences))
    return listed[: int(sound[0]) + 1].copy() if sound.size else listed.copy()


def _complete(
    prefix: str, listed: np.ndarray, lengths: np.ndarray, dtype: np.dtype[Any], eod: int | None
) -> np.ndarray:
    """The document list with boundaries for the sequences beyond its end."""
    last, sequences = int(listed[-1]), lengths.size
    left = np.arange(last + 1, sequences + 1, dtype=np.int64)
    if left.size == 0:
        return listed
    if eod is not None:
        ends = left[ends_with(prefix, lengths, dtype, last, eod)]
        if ends.size == 0 or ends[-1] != sequences:
            raise NotRepairableError(
                f"{get_bin_path(prefix)}: sequence {sequences - 1}, the last, does not end in the "
                f"id {eod}, so the last document is not complete; is eod={eod} right?"
            )
        return np.concatenate([listed, ends])
    one_each = listed.size > 1 and np.array_equal(listed, np.arange(listed.size))
    if one_each or left.size == 1:
        return np.concatenate([listed, left])
    raise NotRepairableError(
        f"{get_idx_path(prefix)}: the document list ends at sequence {last} of {sequences}, and "
        f"how the {left.size} sequences left make documents is unknown; give --eod, the id that "
        "ends a document"
    )


def _index_from_tokens(
    prefix: str, eod: int | None, dtype: Any, vocab_size: int | None
) -> Repaired:
    path, bin_path = get_idx_path(prefix), get_bin_path(prefix)
    if eod is None or dtype is None:
        raise NotRepairableError(
            f"{path} does not exist. It can be made from {bin_path} if every document ends in one "
            "id: give --eod, and --dtype (uint16 for vocabularies below 65,500, else int32)"
        )
    kind = np.dtype(dtype)
    size = open_reader(bin_path).size
    if kind.kind not in "iu" or size % kind.itemsize:
        raise NotRepairableError(
            f"{bin_path} has {size} bytes, which are no whole number of {kind.name} ids; give the "
            "dtype that it was written with"
        )
    doubt = dtype_doubt(bin_path, kind, eod, vocab_size)
    if doubt:
        raise NotRepairableError(f"{bin_path}: {doubt}")
    lengths, rest = document_lengths(bin_path, kind, eod)
    if rest:
        raise NotRepairableError(
            f"{bin_path}: the last {rest:,} of {size // kind.itemsize:,} tokens come after the "
            f"last id {eod}. The last document is cut off, or eod={eod} or dtype={kind.name} is "
            "wrong"
        )
    if lengths.size and int(lengths.max()) > LONGEST:
        raise NotRepairableError(
            f"{bin_path}: a document would have {int(lengths.max()):,} tokens, more than the "
            f"format holds; eod={eod} or dtype={kind.name} is wrong"
        )
    documents = np.arange(lengths.size + 1, dtype=np.int64)
    beside = checksum_path(bin_path)
    known = _index_checksum(bin_path, size) if exists(beside) else None
    _put(prefix, kind, lengths.astype(np.int32), documents, None, known)
    if known is None:
        grounds = f"{kind.name} was taken as given, and nothing in the file speaks against it"
    else:
        grounds = f"the index has the checksum that {beside} notes for it"
    what = f"wrote {lengths.size} documents, each up to its id {eod}; {grounds}"
    return Repaired(path, None, what)


def _index_checksum(bin_path: str, size: int) -> int:
    """CRC-32 of the lost index, as the checksums beside the tokens have it."""
    try:
        return open_checksums(bin_path, size, thorough=True).index
    except ChecksumFileError as error:
        raise NotRepairableError(f"{error}; or move it away, if it is of another file") from error


def _put(
    prefix: str,
    dtype: np.dtype[Any],
    lengths: np.ndarray,
    documents: np.ndarray,
    modes: np.ndarray | None,
    checksum: int | None = None,
) -> str | None:
    """Write the index beside its place, keep the old one, then put the new one in its place.

    Raises:
        NotRepairableError: it does not have the CRC-32 `checksum`, if that is given.
    """
    path = get_idx_path(prefix)
    kept = _free_name(path) if exists(path) else None
    with begin_write(path) as pending:
        counted = CountedFile(pending.file)
        with io.BufferedWriter(counted) as file:
            write_index(file, dtype, lengths, documents, modes)
        if checksum not in (None, counted.checksum):
            beside = checksum_path(get_bin_path(prefix))
            raise NotRepairableError(
                f"{path}: {beside} has the checksum {checksum:08x} of the index that is lost, and "
                f"the one made from the tokens as {dtype.name} has {counted.checksum:08x}. Give "
                "the --eod and --dtype that they were written with; if these are right, documents "
                f"have several sequences: move {beside} away to have one for each document"
            )
        pending.prepare()
        if kept is not None:
            os.link(str(local_path(path)), str(local_path(kept)))
    return kept


def _free_name(path: str) -> str:
    """A name beside `path` that is not taken."""
    name, number = f"{path}.before-repair", 1
    while exists(name):
        number += 1
        name = f"{path}.before-repair-{number}"
    return name
