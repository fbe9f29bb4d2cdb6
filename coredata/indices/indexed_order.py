"""The order stored in three index arrays."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coredata._kernel import kernel, part
from coredata._typing import Int64, Integer
from coredata.indices.gpt import GPTIndices
from coredata.indices.order import SampleSpans
from coredata.indices.prefetch import prefetch

_NO_SAMPLE, _NO_ROW, _NO_POSITION, _NO_DOCUMENT, _BAD_OFFSET, _TOO_LONG = range(1, 7)


@dataclass(frozen=True, eq=False)
class IndexedOrder:
    """Samples as document, sample and shuffle index give them.

    The arrays may be mapped files; they are read where a sample needs them, and every number in
    them is checked against the others before it is used.

    Attributes:
        indices: the three arrays.
        sequence_lengths: tokens of each sequence of the file.
        sequence_length: tokens of a sample.
        add_extra_token: whether a sample has one token more, for the last label.
    """

    indices: GPTIndices
    sequence_lengths: Integer[np.ndarray, " sequences"]
    sequence_length: int
    add_extra_token: bool | int = True

    def __len__(self) -> int:
        """Number of samples."""
        return self.indices.shuffle_index.size

    def spans(self, samples: Int64[np.ndarray, " batch"]) -> SampleSpans:
        """The tokens of `samples`; see `SampleOrder`.

        Raises:
            IndexError: a sample that does not exist.
            ValueError: index arrays that contradict each other or the file.
        """
        error, at, count, table = _spans(
            samples if samples.flags.carray else samples.copy(),
            *self.arrays,
            int(self.add_extra_token),
            self.sequence_length,
        )
        if error:
            self._refuse(error, int(samples[at]))
        rows = len(samples) + 1
        room = (len(table) - rows) // 3
        first, second, third = rows, rows + room, rows + 2 * room
        return SampleSpans(
            table[first : first + count],
            table[second : second + count],
            table[third : third + count],
            table[:rows],
        )

    @cached_property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What `find_spans` reads: shuffle, sample and document index, lengths of sequences."""
        return (
            _read_only(self.indices.shuffle_index),
            _read_only(self.indices.sample_index),
            _read_only(self.indices.document_index),
            _read_only(self.sequence_lengths),
        )

    def _refuse(self, error: int, sample: int) -> None:
        if error == _NO_SAMPLE:
            raise IndexError(
                f"sample {sample} was asked of {len(self)} samples; they are numbered "
                f"0 … {len(self) - 1}"
            )
        found = {
            _NO_ROW: "the shuffle index points outside the sample index",
            _NO_POSITION: "the sample index points outside the document index",
            _NO_DOCUMENT: "the document index names a sequence that the file does not have",
            _BAD_OFFSET: "the sample index points outside a document",
            _TOO_LONG: f"it has more than its {self.sequence_length} tokens",
        }[error]
        row = self.indices.shuffle_index[sample]
        raise ValueError(
            f"sample {sample} (row {row} of the sample index): {found}. The index arrays "
            f"(document index of {self.indices.document_index.size} entries, sample index of "
            f"{len(self.indices.sample_index)} rows, {self.sequence_lengths.size} sequences) are "
            "damaged or belong to another file. Delete them from the cache and build them again"
        )


def _read_only(array: np.ndarray) -> np.ndarray:
    """The same memory, marked read-only: mapped and writable arrays share one compiled version."""
    view = np.ascontiguousarray(array)[...]
    view.flags.writeable = False
    return view


@kernel
def _spans(
    samples,
    shuffle_index,
    sample_index,
    document_index,
    sequence_lengths,
    extra_token,
    sequence_length,
):
    """`find_spans`, for calls from Python."""
    return find_spans(
        samples,
        shuffle_index,
        sample_index,
        document_index,
        sequence_lengths,
        sequence_lengths,
        extra_token,
        sequence_length,
    )


@part
def find_spans(
    samples,
    shuffle_index,
    sample_index,
    document_index,
    sequence_lengths,
    sequence_pointers,
    extra_token,
    sequence_length,
):
    """Check and write the spans of every sample, for kernels that read them too.

    Arrays may be large and mapped, so every step asks for the memory that the next one reads:
    rows of the sample index, documents, their lengths. `sequence_pointers` are only asked for, on
    behalf of whoever reads the spans.

    Returns an error and its sample, the number of spans, and one array, because each costs time to
    hand over: row splits, then room for sequences, offsets and lengths.
    """
    rows = np.int64(samples.size + 1)
    longest = sequence_length + extra_token
    error, at, room = _check_rows(samples, shuffle_index, sample_index, document_index, longest)
    table = np.empty(rows + 3 * room, np.int64)
    count = np.int64(0)
    if error == 0:
        for b in range(samples.size):
            row = np.int64(shuffle_index[samples[b]])
            first, last = np.int64(sample_index[row, 0]), np.int64(sample_index[row + 1, 0])
            for position in range(first, min(last + 1, first + longest)):
                document = np.int64(document_index[position])
                prefetch(sequence_lengths, document)
                prefetch(sequence_pointers, document)
        error, at, count = _cut(
            samples,
            shuffle_index,
            sample_index,
            document_index,
            sequence_lengths,
            extra_token,
            longest,
            table,
        )
    return error, at, count, table


@part
def _check_rows(samples, shuffle_index, sample_index, document_index, longest):
    """An error and its sample, and room for the spans: one a document, not more than tokens."""
    for b in range(samples.size):
        if samples[b] < 0 or samples[b] >= shuffle_index.size:
            return np.int64(_NO_SAMPLE), np.int64(b), np.int64(0)
        row = np.int64(shuffle_index[samples[b]])
        if row < 0 or row >= sample_index.shape[0] - 1:
            return np.int64(_NO_ROW), np.int64(b), np.int64(0)
        prefetch(sample_index, 2 * row)
    room = np.int64(0)
    for b in range(samples.size):
        row = np.int64(shuffle_index[samples[b]])
        first, last = np.int64(sample_index[row, 0]), np.int64(sample_index[row + 1, 0])
        if first < 0 or last < first or last >= document_index.size:
            return np.int64(_NO_POSITION), np.int64(b), np.int64(0)
        documents = min(last - first + 1, longest)
        room += documents
        for position in range(first, first + documents):
            prefetch(document_index, position)
    return np.int64(0), np.int64(0), room


@part
def _cut(
    samples,
    shuffle_index,
    sample_index,
    document_index,
    sequence_lengths,
    extra_token,
    longest,
    table,
):
    """Write the table of `find_spans`; an error and its sample, and the number of spans."""
    rows = samples.size + 1
    room = (table.size - rows) // 3
    sequences = table[rows : rows + room]
    offsets = table[rows + room : rows + 2 * room]
    lengths = table[rows + 2 * room :]
    table[0] = 0
    span = np.int64(0)
    for b in range(samples.size):
        tokens = np.int64(0)
        row = np.int64(shuffle_index[samples[b]])
        first, last = np.int64(sample_index[row, 0]), np.int64(sample_index[row + 1, 0])
        for position in range(first, last + 1):
            document = np.int64(document_index[position])
            if document < 0 or document >= sequence_lengths.size:
                return np.int64(_NO_DOCUMENT), np.int64(b), span
            available = np.int64(sequence_lengths[document])
            begin = np.int64(sample_index[row, 1]) if position == first else np.int64(0)
            end = available
            if position == last:
                end = np.int64(sample_index[row + 1, 1]) + extra_token
            if begin < 0 or end < begin or end > available:
                return np.int64(_BAD_OFFSET), np.int64(b), span
            tokens += end - begin
            if tokens > longest:
                return np.int64(_TOO_LONG), np.int64(b), span
            if end > begin:
                sequences[span] = document
                offsets[span] = begin
                lengths[span] = end - begin
                span += 1
        table[b + 1] = span
    return np.int64(0), np.int64(0), span
