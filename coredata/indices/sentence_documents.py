"""Which documents give samples of sentences, and why others do not."""

from dataclasses import dataclass

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Integer

LONGEST_SENTENCE = 512
"""Documents of several sentences of which one has more tokens than this are left out."""


@dataclass(frozen=True)
class DocumentCounts:
    """Which documents give samples, and why others do not."""

    documents: int
    empty: int
    """Without sentences."""
    few: int
    """With sentences, but fewer than asked."""
    long: int
    """With enough sentences, one of them too long."""
    single: int
    """With exactly one sentence, whether they qualify or not."""
    sentences: int
    """Sentences of the documents that qualify: each is in one sample per epoch."""

    @property
    def qualifying(self) -> int:
        """Documents that give samples."""
        return self.documents - self.empty - self.few - self.long

    def __str__(self) -> str:
        """As errors tell it."""
        return (
            f"of {self.documents} documents {self.empty} are empty, {self.few} have too few "
            f"sentences, {self.long} have a sentence of more than {LONGEST_SENTENCE} tokens, "
            f"{self.qualifying} qualify"
        )


def qualifying_documents(
    document_indices: Integer[np.ndarray, " boundaries"],
    sequence_lengths: Integer[np.ndarray, " sentences"],
    documents: Integer[np.ndarray, " documents"],
    min_sentences: int,
) -> tuple[Integer[np.ndarray, " qualifying"], DocumentCounts]:
    """The documents that give samples (int64, in their order), and counts of all.

    Raises:
        IndexError: a document that the file does not have.
        ValueError: document boundaries that do not fit the sentences; the file is damaged.
    """
    chosen = np.ascontiguousarray(documents, np.int64)
    kept = np.empty(chosen.size, np.int64)
    counts = np.zeros(6, np.int64)
    bad = _qualify(
        read_only(document_indices),
        read_only(sequence_lengths),
        read_only(chosen),
        np.int64(min_sentences),
        kept,
        counts,
    )
    if bad >= 0:
        _refuse(document_indices, sequence_lengths, int(chosen[bad]))
    number, empty, few, long, single, sentences = (int(count) for count in counts)
    return kept[:number], DocumentCounts(chosen.size, empty, few, long, single, sentences)


def _refuse(document_indices: np.ndarray, sequence_lengths: np.ndarray, document: int) -> None:
    known = document_indices.size - 1
    if not 0 <= document < known:
        raise IndexError(
            f"documents: there is no document {document} in a file of {known}; they are numbered "
            f"0 … {known - 1}"
        )
    begin, end = document_indices[document : document + 2]
    raise ValueError(
        f"document_indices: document {document} is said to have the sentences {begin} to {end} of "
        f"{sequence_lengths.size}, or one of them a negative length; the file is damaged"
    )


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view (or copy, where it is strided): one compiled version serves all."""
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


@kernel
def _qualify(document_indices, sequence_lengths, documents, min_sentences, kept, counts):
    """Fill `kept` and `counts`; return -1, or the entry of `documents` that is wrong."""
    number = np.int64(0)
    for entry in range(documents.size):
        document = documents[entry]
        if document < 0 or document + 1 >= document_indices.size:
            return np.int64(entry)
        first = np.int64(document_indices[document])
        last = np.int64(document_indices[document + 1])
        if first < 0 or last < first or last > sequence_lengths.size:
            return np.int64(entry)
        longest = np.int64(0)
        for sentence in range(first, last):
            length = np.int64(sequence_lengths[sentence])
            if length < 0:
                return np.int64(entry)
            longest = max(longest, length)
        counts[4] += last - first == 1
        if first == last:
            counts[1] += 1
        elif last - first < min_sentences:
            counts[2] += 1
        elif last - first > 1 and longest > LONGEST_SENTENCE:
            counts[3] += 1
        else:
            kept[number] = document
            number += 1
            counts[5] += last - first
    counts[0] = number
    return np.int64(-1)
