"""The sentence map: which sentences make a sample of BERT or T5, and how long it is to be.

Bit for bit the reference's `build_mapping`: lengths are drawn with a 32-bit Mersenne Twister,
samples are shuffled with a 64-bit one.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Integer
from coredata.indices.mt19937 import mt19937_seed, next32
from coredata.indices.mt19937_64 import mt19937_64_seed, shuffle_rows

LONGEST_SENTENCE = 512
"""Documents of several sentences of which one has more tokens than this are left out."""

_SMALLEST_PROBABILITY = 2.0**-31
_CHUNK = 1 << 19
"""Rows collected at a time."""
_FINISHED = -1


@dataclass(frozen=True)
class SentenceSettings:
    """What a sentence map follows from, beside the data.

    Attributes:
        max_length: the usual target length in tokens, special tokens not counted; at least 2.
        short_sequence_probability: how often a shorter target is drawn. It is made the inverse of
            a whole number (0.15 becomes 1/7), as in the reference.
        min_sentences: sentences that a document must have, and a sample but the last of one.
        random_seed: 0 … 2^32 - 1.

    Raises:
        ValueError: one of them out of range.
    """

    max_length: int
    short_sequence_probability: int | float
    min_sentences: int
    random_seed: int

    def __post_init__(self) -> None:
        if self.max_length < 2:
            raise ValueError(f"max_length: {self.max_length} tokens; need at least 2, such as 509")
        if self.short_sequence_probability != 0 and not (
            _SMALLEST_PROBABILITY < self.short_sequence_probability <= 1
        ):
            raise ValueError(
                f"short_sequence_probability: {self.short_sequence_probability!r} is no "
                f"probability above {_SMALLEST_PROBABILITY:.0e}, or 0; 0.1 would do"
            )
        if self.min_sentences < 1:
            raise ValueError(f"min_sentences: {self.min_sentences}; need at least 1")

    @property
    def short_ratio(self) -> int:
        """One target in so many is short; 0 for none."""
        if self.short_sequence_probability == 0:
            return 0
        return math.floor(1.0 / self.short_sequence_probability + 0.5)


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


def sentence_map_dtype(sentences: int) -> np.dtype:
    """uint32, or uint64 for a file of more than 2^32 - 1 sentences."""
    return np.dtype(np.uint32 if sentences <= 2**32 - 1 else np.uint64)


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
        _read_only(document_indices),
        _read_only(sequence_lengths),
        _read_only(chosen),
        np.int64(min_sentences),
        kept,
        counts,
    )
    if bad >= 0:
        _refuse(document_indices, sequence_lengths, int(chosen[bad]))
    number, empty, few, long, single, sentences = (int(count) for count in counts)
    return kept[:number], DocumentCounts(chosen.size, empty, few, long, single, sentences)


def build_sentence_map(
    document_indices: Integer[np.ndarray, " boundaries"],
    sequence_lengths: Integer[np.ndarray, " sentences"],
    documents: Integer[np.ndarray, " documents"],
    num_samples: int | None,
    settings: SentenceSettings,
    source: str = "the dataset",
) -> Integer[np.ndarray, "samples 3"]:
    """Rows of (first sentence, sentence after the last, target length), shuffled.

    Whole epochs are walked until there are `num_samples` samples, so there are usually more. In an
    epoch each sentence of each document that qualifies is in one sample; a sample never spans two
    documents.

    Args:
        document_indices: first sentence of each document of the file, then the number of all.
        sequence_lengths: tokens of each sentence of the file.
        documents: the documents that are used.
        num_samples: samples asked for, or None for one epoch.
        settings: see there.
        source: what is read, for error texts.

    Returns:
        uint32 (uint64 for a file of more than 2^32 - 1 sentences).

    Raises:
        ValueError: samples asked of documents none of which qualifies (the reference never
            returns here), a negative number of samples, or a damaged file.
        IndexError: a document that the file does not have.
    """
    if num_samples is not None and num_samples < 0:
        raise ValueError(
            f"num_samples: {num_samples} is negative. Use None for one epoch of {source}"
        )
    qualifying, counts = qualifying_documents(
        document_indices, sequence_lengths, documents, settings.min_sentences
    )
    if num_samples and not qualifying.size:
        raise ValueError(_none_qualifies(num_samples, settings.min_sentences, counts, source))
    rows = _rows(document_indices, sequence_lengths, qualifying, num_samples, settings)
    shuffle_rows(rows, mt19937_64_seed(settings.random_seed + 1))
    return rows


def _rows(
    document_indices: np.ndarray,
    sequence_lengths: np.ndarray,
    qualifying: np.ndarray,
    num_samples: int | None,
    settings: SentenceSettings,
) -> np.ndarray:
    """The rows in the order in which the walk finds them.

    Only the walk tells how many there are. They are collected in chunks and then joined, each
    chunk being freed once it is copied: one walk, and little memory beside the result.
    """
    per_document = document_indices[qualifying + 1] - document_indices[qualifying]
    capacity = max(_CHUNK, int(per_document.max(initial=0)))
    dtype = sentence_map_dtype(sequence_lengths.size)
    boundaries, lengths = _read_only(document_indices), _read_only(sequence_lengths)
    documents, state = _read_only(qualifying), mt19937_seed(settings.random_seed)
    chunks: deque[np.ndarray] = deque()
    count = 0
    entry = _FINISHED if num_samples == 0 or not qualifying.size else 0
    while entry != _FINISHED:
        chunk = np.empty((capacity, 3), dtype)
        entry, filled = _walk(
            boundaries,
            lengths,
            documents,
            np.int64(entry),
            np.int64(-1 if num_samples is None else max(num_samples - count, 0)),
            np.int64(settings.max_length),
            np.uint32(settings.short_ratio),
            np.int64(settings.min_sentences),
            state,
            chunk,
        )
        chunks.append(chunk[:filled])
        count += filled
        del chunk
    rows = np.empty((count, 3), dtype)
    begin = 0
    while chunks:
        chunk = chunks.popleft()
        rows[begin : begin + len(chunk)] = chunk
        begin += len(chunk)
    return rows


def _none_qualifies(num_samples: int, least: int, counts: DocumentCounts, source: str) -> str:
    text = (
        f"num_samples: {num_samples} samples were asked of {source}, but no document can give one: "
        f"{counts}. A sample needs a document of at least {least} sentence"
        f"{'' if least == 1 else 's'}. "
    )
    if counts.documents and counts.single == counts.documents and least > 1:
        return text + (
            "Every document is a single sequence: was the file made without splitting sentences? "
            "Make it with `coredata preprocess --split-sentences`, or set classification_head=False"
        )
    return text + "Give this split more documents, or ask it for 0 samples"


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


def _read_only(array: np.ndarray) -> np.ndarray:
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


@kernel
def _target(state, max_length, short_ratio):
    """A sample's target length: short one time in `short_ratio`."""
    if short_ratio == 0:
        return max_length
    number = next32(state)
    if np.uint32(number) % short_ratio == 0:
        return 2 + number % (max_length - 1)
    return max_length


@kernel
def _walk(
    document_indices,
    sequence_lengths,
    qualifying,
    entry,
    num_samples,
    max_length,
    short_ratio,
    min_sentences,
    state,
    out,
):
    """Write rows to `out` from entry `entry` of `qualifying` on; return where it stopped, and rows.

    It stops before a document whose rows may not fit, or (_FINISHED) at the end of an epoch if
    there are `num_samples` rows, or that is -1. Each document and each row before draw a target.
    """
    count = np.int64(0)
    while True:
        if entry == qualifying.size:
            if num_samples < 0 or count >= num_samples:
                return np.int64(_FINISHED), count
            entry = np.int64(0)
        begin = np.int64(document_indices[qualifying[entry]])
        end = np.int64(document_indices[qualifying[entry] + 1])
        if count + end - begin > out.shape[0]:
            return entry, count
        target = _target(state, max_length, short_ratio)
        length = np.int64(0)
        # A row that is not the last of its document leaves it at least two sentences.
        for sentence in range(begin, end - 2):
            length += np.int64(sequence_lengths[sentence])
            if length >= target and sentence + 1 - begin >= min_sentences:
                out[count, 0] = begin
                out[count, 1] = sentence + 1
                out[count, 2] = target
                count += 1
                begin = np.int64(sentence) + 1
                length = np.int64(0)
                target = _target(state, max_length, short_ratio)
        out[count, 0] = begin
        out[count, 1] = end
        out[count, 2] = target
        count += 1
        _target(state, max_length, short_ratio)
        entry += 1
