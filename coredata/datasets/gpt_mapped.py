"""Batches straight from mapped files: from sample numbers to fields in one compiled call."""

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Integer
from coredata.datasets.gpt_fields import fill
from coredata.indices import find_spans


@kernel
def read_samples(
    samples,
    shuffle_index,
    sample_index,
    document_index,
    sequence_lengths,
    sequence_pointers,
    memory,
    extra,
    pad,
    counted,
    tokens,
    labels,
    loss_mask,
    position_ids,
):
    """Find the tokens of `samples` and turn them into fields where they lie.

    Everything is checked before it is used. `sequence_pointers` count bytes, `memory` is the
    whole file. Returns row splits (B + 1), then three parts of equal size, of which the first
    begins with where in `memory` each span lies and the third with its length: one array, because
    each costs time to hand over. It is empty where something is wrong; then nothing has been
    written, and whoever reads the samples in steps finds out what it is.
    """
    size = np.int64(tokens.shape[1])
    itemsize = np.int64(memory.itemsize)
    error, _, count, table = find_spans(
        samples,
        shuffle_index,
        sample_index,
        document_index,
        sequence_lengths,
        sequence_pointers,
        extra,
        size,
    )
    nothing = table[:0]
    if error != 0:
        return nothing
    rows = samples.size + 1
    room = (table.size - rows) // 3
    starts = table[rows : rows + room]
    offsets = table[rows + room : rows + 2 * room]
    lengths = table[rows + 2 * room :]
    for span in range(count):
        sequence = starts[span]
        if sequence >= sequence_pointers.size:
            return nothing
        pointer = sequence_pointers[sequence]
        bytes_before = offsets[span] * itemsize
        available = memory.size * itemsize - pointer
        if pointer < 0 or pointer % itemsize != 0:
            return nothing
        if bytes_before + lengths[span] * itemsize > available:
            return nothing
        starts[span] = (pointer + bytes_before) // itemsize
    fill(
        memory,
        starts,
        lengths,
        table[:rows],
        pad,
        counted,
        tokens,
        labels,
        loss_mask,
        position_ids,
    )
    return table


def lengths_of_rows(
    row_splits: Integer[np.ndarray, " splits"], lengths: Integer[np.ndarray, " spans"]
) -> Integer[np.ndarray, " rows"]:
    """Tokens of each row, from those of its spans."""
    before = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=before[1:])
    return np.diff(before[row_splits])
