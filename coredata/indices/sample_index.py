"""The sample index: where in the shuffled documents each sample starts."""

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Integer
from coredata.indices.prefetch import prefetch

_INT32_MAX = 2**31 - 1
_RAN_OUT = -2
_BLOCK = 256


def sample_index_dtype(entries: int, longest_document: int) -> np.dtype:
    """int32 where it can count both the document index and a document's tokens, else int64."""
    return np.dtype(np.int32 if max(entries, longest_document) <= _INT32_MAX else np.int64)


def build_sample_index(
    sequence_lengths: Integer[np.ndarray, " sequences"],
    document_index: Integer[np.ndarray, " entries"],
    sequence_length: int,
    samples: int,
    extra_token: bool | int = True,
) -> Integer[np.ndarray, "rows 2"]:
    """Cut the documents, one after the other, into samples.

    Row j is (position in the document index, token offset in that document) where sample j
    starts; row j+1 is where it ends. A sample owns `sequence_length` tokens and, with
    `extra_token`, sees one more: neighbours share it. A last partial sample ends with the tokens.

    Args:
        sequence_lengths: tokens of each sequence of the file.
        document_index: which sequence comes when.
        sequence_length: tokens of a sample.
        samples: how many samples to cut; see `number_of_samples`.
        extra_token: whether a sample sees the token after it.

    Raises:
        IndexError: a document that the file does not have.
        ValueError: a document of negative length, or more samples than there are tokens for.
    """
    longest = int(sequence_lengths.max(initial=0))
    out = np.empty((samples + 1, 2), sample_index_dtype(document_index.size, longest))
    bad = _walk(
        np.require(sequence_lengths, requirements=["C", "A"]),
        np.require(document_index, requirements=["C", "A"]),
        np.int64(sequence_length),
        np.int64(extra_token),
        out,
    )
    if bad == _RAN_OUT:
        raise ValueError(
            f"samples: {document_index.size} documents do not have the tokens for {samples} "
            f"samples of {sequence_length} tokens; number_of_samples tells how many they give"
        )
    if bad >= 0:
        _refuse(sequence_lengths, int(document_index[bad]), int(bad))
    return out


def _refuse(sequence_lengths: np.ndarray, document: int, position: int) -> None:
    if not 0 <= document < sequence_lengths.size:
        raise IndexError(
            f"document_index: entry {position} is document {document}, but the file has "
            f"{sequence_lengths.size} sequences. Is the index from another file? Build it again"
        )
    raise ValueError(
        f"sequence_lengths: sequence {document} has length {sequence_lengths[document]}; the "
        "file is damaged"
    )


@kernel
def _walk(sequence_lengths, document_index, sequence_length, extra_token, out):
    """Fill `out`; return -1, or the entry that is wrong, or _RAN_OUT.

    Documents come in random order, so the lengths of a block of them are prefetched while those of
    the block before are added up. A document begins at token `begin` of all; the next row is done
    once `needed` tokens of all were seen.
    """
    entries = np.int64(document_index.size)
    rows = np.int64(out.shape[0])
    out[0, 0] = 0
    out[0, 1] = 0
    row = np.int64(1)
    begin = np.int64(0)
    needed = sequence_length + extra_token
    for ahead in range(min(np.int64(_BLOCK), entries)):
        prefetch(sequence_lengths, np.int64(document_index[ahead]))
    for first in range(0, entries, _BLOCK):
        for ahead in range(first + _BLOCK, min(entries, np.int64(first + 2 * _BLOCK))):
            prefetch(sequence_lengths, np.int64(document_index[ahead]))
        for position in range(first, min(entries, np.int64(first + _BLOCK))):
            if row == rows:
                return np.int64(-1)
            document = np.int64(document_index[position])
            if document < 0 or document >= sequence_lengths.size:
                return position
            length = np.int64(sequence_lengths[document])
            if length < 0:
                return position
            end = begin + length
            while end >= needed and row < rows:
                out[row, 0] = position
                out[row, 1] = needed - extra_token - begin
                row += 1
                needed += sequence_length
            begin = end
    if row == rows:
        return np.int64(-1)
    if row < rows - 1 or entries == 0:
        return np.int64(_RAN_OUT)
    # A last partial sample ends with the last document.
    out[row, 0] = entries - 1
    out[row, 1] = np.int64(sequence_lengths[document_index[entries - 1]]) - extra_token
    return np.int64(-1)
