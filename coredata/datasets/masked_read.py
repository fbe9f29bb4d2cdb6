"""Reading the sentences of samples."""

from collections.abc import Mapping
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


def read_sentences(
    source: SentenceSource,
    sample_index: Integer[np.ndarray, "samples 3"],
    numbers: Int64[np.ndarray, " batch"],
    random_seed: int,
    max_length: int,
    only_target: bool,
) -> SampleSentences:
    """The sentences of the samples `numbers`, in one call to the source.

    With `only_target`, no token of a sample is read beyond its target length.

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
    whole = ends[row_splits[1:]] - ends[row_splits[:-1]]
    if only_target:
        room = np.repeat(targets + ends[row_splits[:-1]], counts) - ends[:-1]
        lengths = np.clip(room, 0, lengths)
        np.cumsum(lengths, out=ends[1:])
    tokens = np.empty(int(ends[-1]), np.int64)
    source.read_into(sequences, np.zeros_like(sequences), lengths, tokens, ends[:-1])
    seeds = (random_seed + numbers) % 2**32
    return SampleSentences(tokens, lengths, targets, row_splits, whole, seeds, numbers)
