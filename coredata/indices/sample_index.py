"""The sample index: where in the shuffled documents each sample starts."""

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Integer

_INT32_MAX = 2**31 - 1
_RAN_OUT = -2


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
    """Fill `out`; return -1, or the entry that is wrong, or _RAN_OUT."""
    entries = np.int64(document_index.size)
    position = np.int64(0)
    offset = np.int64(0)
    out[0, 0] = 0
    out[0, 1] = 0
    for row in range(1, out.shape[0]):
        remaining = sequence_length + extra_token
        while remaining > 0:
            if position >= entries:
                return np.int64(_RAN_OUT)
            document = np.int64(document_index[position])
            if document < 0 or document >= sequence_lengths.size or sequence_lengths[document] < 0:
                return position
            length = np.int64(sequence_lengths[document])
            rest = length - offset
            if rest >= remaining:
                offset += remaining - extra_token
                remaining = np.int64(0)
            elif position < entries - 1:
                remaining -= rest
                position += 1
                offset = np.int64(0)
            elif row == out.shape[0] - 1:
                offset = length - extra_token
                remaining = np.int64(0)
            else:
                return np.int64(_RAN_OUT)
        out[row, 0] = position
        out[row, 1] = offset
    return np.int64(-1)
