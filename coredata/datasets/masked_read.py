"""Reading the sentences of samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coredata._typing import Int32, Int64, Integer
from coredata.masking import SampleSentences


@runtime_checkable
class SentenceSource(Protocol):
    """A `TokenSource` whose sequences are sentences, and that knows their documents."""

    @property
    def sequence_lengths(self) -> Int32[np.ndarray, " sentences"]:
        """Tokens in each sentence."""
        ...

    @property
    def document_indices(self) -> Int64[np.ndarray, " boundaries"]:
        """First sentence of each document, then the number of sentences."""
        ...

    def __len__(self) -> int:
        """Number of sentences."""
        ...

    def read_into(
        self,
        sequences: Int64[np.ndarray, " spans"],
        offsets: Int64[np.ndarray, " spans"],
        lengths: Int64[np.ndarray, " spans"],
        out: Integer[np.ndarray, " tokens"],
        out_offsets: Int64[np.ndarray, " spans"],
    ) -> None:
        """Copy ranges of sentences to `out`; see `TokenSource`."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """What the source is, without its place."""
        ...


@dataclass(frozen=True, eq=False)
class SentenceSpans:
    """Where the sentences of samples are.

    Attributes:
        sequences: number of each sentence.
        lengths: tokens of each that are read, from its start.
        targets: length in tokens of each sample.
        row_splits: sentences of sample k are those from row_splits[k] up to row_splits[k + 1].
        whole: tokens of each sample if nothing were left out.
    """

    sequences: Int64[np.ndarray, " sentences"]
    lengths: Int64[np.ndarray, " sentences"]
    targets: Int64[np.ndarray, " batch"]
    row_splits: Int64[np.ndarray, " batch+1"]
    whole: Int64[np.ndarray, " batch"]


def sentence_spans(
    source: SentenceSource,
    sample_index: Integer[np.ndarray, "samples 3"],
    numbers: Int64[np.ndarray, " batch"],
    max_length: int,
    only_target: bool,
) -> SentenceSpans:
    """The sentences of the samples `numbers`.

    With `only_target`, no token of a sample is counted in beyond its target length.

    Raises:
        ValueError: a row of the map that does not fit the source or `max_length`.
    """
    rows = sample_index[numbers].astype(np.int64)
    first, last, targets = rows[:, 0], rows[:, 1], rows[:, 2]
    sentences = len(source.sequence_lengths)
    good = (first >= 0) & (first < last) & (last <= sentences)
    good &= (targets >= 2) & (targets <= max_length)
    if not good.all():
        at = int(good.argmin())
        raise ValueError(
            f"sample {numbers[at]}: the sentence map says {rows[at].tolist()} (first sentence, "
            f"sentence after the last, target length), but the file has {sentences} sentences and "
            f"targets are 2 to {max_length}. Delete the index cache to have it built again"
        )
    counts = last - first
    row_splits = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(counts, out=row_splits[1:])
    sequences = np.arange(row_splits[-1]) + np.repeat(first - row_splits[:-1], counts)
    lengths = source.sequence_lengths[sequences].astype(np.int64)
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    begins = ends[row_splits[:-1]]
    whole = ends[row_splits[1:]] - begins
    if only_target:
        lengths = np.clip(np.repeat(targets + begins, counts) - ends[:-1], 0, lengths)
    return SentenceSpans(sequences, lengths, targets, row_splits, whole)


def read_sentences(
    source: SentenceSource,
    spans: SentenceSpans,
    numbers: Int64[np.ndarray, " batch"],
    random_seed: int,
) -> SampleSentences:
    """Read the sentences of the samples `numbers`, in one call to the source.

    Raises:
        IndexError, ValueError, OSError: as the source does.
    """
    ends = np.cumsum(spans.lengths)
    tokens = np.empty(int(ends[-1]) if ends.size else 0, np.int64)
    offsets = np.zeros_like(spans.sequences)
    source.read_into(spans.sequences, offsets, spans.lengths, tokens, ends - spans.lengths)
    return SampleSentences(
        tokens=tokens,
        lengths=spans.lengths,
        targets=spans.targets,
        row_splits=spans.row_splits,
        whole=spans.whole,
        seeds=(random_seed + numbers) % 2**32,
        numbers=numbers,
    )
