"""The sentence map: which sentences make a sample of BERT or T5, and how long it is to be.

Bit for bit the reference's `build_mapping`: lengths are drawn with a 32-bit Mersenne Twister,
samples are shuffled with a 64-bit one.
"""

import math
from dataclasses import dataclass

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Integer
from coredata.indices.mt19937 import mt19937_seed, next32
from coredata.indices.mt19937_64 import mt19937_64_seed, shuffle_rows
from coredata.indices.sentence_documents import DocumentCounts, qualifying_documents, read_only

_SMALLEST_PROBABILITY = 2.0**-31


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


def sentence_map_dtype(sentences: int) -> np.dtype:
    """uint32, or uint64 for a file of more than 2^32 - 1 sentences."""
    return np.dtype(np.uint32 if sentences <= 2**32 - 1 else np.uint64)


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
    # A row has two sentences or `min_sentences`. What is not written of it takes no memory.
    most = (num_samples or 0) + counts.sentences // min(settings.min_sentences, 2)
    rows = np.empty((most, 3), sentence_map_dtype(sequence_lengths.size))
    samples = _walk(
        read_only(document_indices),
        read_only(sequence_lengths),
        read_only(qualifying),
        np.int64(-1 if num_samples is None else num_samples),
        np.int64(settings.max_length),
        np.uint32(settings.short_ratio),
        np.int64(settings.min_sentences),
        mt19937_seed(settings.random_seed),
        rows,
    )
    rows.resize((int(samples), 3), refcheck=False)
    shuffle_rows(rows, mt19937_64_seed(settings.random_seed + 1))
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
    num_samples,
    max_length,
    short_ratio,
    min_sentences,
    state,
    out,
):
    """Write the rows of all epochs to `out`, which must have room; return how many.

    `num_samples` is -1 for one epoch. Each document draws a target, and so does each row after it.
    """
    count = np.int64(0)
    epoch = np.int64(0)
    while qualifying.size and (count < num_samples or (num_samples < 0 and epoch == 0)):
        for entry in range(qualifying.size):
            begin = np.int64(document_indices[qualifying[entry]])
            end = np.int64(document_indices[qualifying[entry] + 1])
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
        epoch += 1
    return count
