"""The order stored in three index arrays."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coredata._kernel import kernel, part
from coredata._typing import Int64, Integer
from coredata.indices.gpt import GPTIndices
from coredata.indices.order import SampleSpans

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
            *self._arrays,
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
    def _arrays(self) -> tuple[np.ndarray, ...]:
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


@part
def _span(row, position, sample_index, document_index, sequence_lengths, extra_token):
    """Document, offset and length of one span; a negative document is an error code."""
    document = np.int64(document_index[position])
    if document < 0 or document >= sequence_lengths.size:
        return np.int64(-_NO_DOCUMENT), np.int64(0), np.int64(0)
    begin = np.int64(0)
    end = np.int64(sequence_lengths[document])
    if position == sample_index[row, 0]:
        begin = np.int64(sample_index[row, 1])
    if position == sample_index[row + 1, 0]:
        end = np.int64(sample_index[row + 1, 1]) + extra_token
    if begin < 0 or end < begin or end > sequence_lengths[document]:
        return np.int64(-_BAD_OFFSET), np.int64(0), np.int64(0)
    return document, begin, end - begin


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
    """Check and write the spans of every sample.

    First the rows are checked, and how many spans they may have is found: one for each document,
    and not more than tokens. Then each document is looked at once.

    Returns an error and its sample, the number of spans, and one array, because each costs time to
    hand over: row splits, then room for sequences, offsets and lengths.
    """
    rows = np.int64(samples.size + 1)
    error = np.int64(0)
    at = np.int64(0)
    longest = sequence_length + extra_token
    room = np.int64(0)
    for b in range(samples.size):
        if samples[b] < 0 or samples[b] >= shuffle_index.size:
            error = np.int64(_NO_SAMPLE)
        else:
            row = np.int64(shuffle_index[samples[b]])
            if row < 0 or row >= sample_index.shape[0] - 1:
                error = np.int64(_NO_ROW)
            else:
                first = np.int64(sample_index[row, 0])
                last = np.int64(sample_index[row + 1, 0])
                if first < 0 or last < first or last >= document_index.size:
                    error = np.int64(_NO_POSITION)
                else:
                    room += min(last - first + 1, longest)
        if error != 0:
            at = np.int64(b)
            room = np.int64(0)
            break
    table = np.empty(rows + 3 * room, np.int64)
    row_splits = table[:rows]
    sequences = table[rows : rows + room]
    offsets = table[rows + room : rows + 2 * room]
    lengths = table[rows + 2 * room :]
    row_splits[0] = 0
    span = np.int64(0)
    for b in range(samples.size):
        if error != 0:
            break
        at = np.int64(b)
        tokens = np.int64(0)
        row = np.int64(shuffle_index[samples[b]])
        first = np.int64(sample_index[row, 0])
        last = np.int64(sample_index[row + 1, 0])
        for position in range(first, last + 1):
            document, offset, length = _span(
                row, position, sample_index, document_index, sequence_lengths, extra_token
            )
            tokens += length
            if document < 0:
                error = -document
            elif tokens > longest:
                error = np.int64(_TOO_LONG)
            if error != 0:
                break
            if length > 0:
                sequences[span] = document
                offsets[span] = offset
                lengths[span] = length
                span += 1
        row_splits[b + 1] = span
    return error, at, span, table
