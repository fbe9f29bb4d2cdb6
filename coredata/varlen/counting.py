"""Sorting by counting, in compiled code: time in proportion to the number of segments."""

import numpy as np

from coredata._kernel import kernel


@kernel
def long_to_short(lengths, limit, order):
    """Fill `order` with the segments from long to short, equal ones as they were.

    Lengths are 0 … limit; a table of that length is kept.
    """
    starts = np.zeros(limit + 2, np.int64)
    for length in lengths:
        starts[length] += 1
    before = np.int64(0)
    for length in range(limit, -1, -1):
        count = starts[length]
        starts[length] = before
        before += count
    for segment in range(lengths.size):
        length = lengths[segment]
        order[starts[length]] = segment
        starts[length] += 1


@kernel
def by_row(row_of, rows, splits, segments):
    """Number rows anew, in the order of their first segments, and list each row's segments.

    Segments whose `row_of` is -1 are in no row.

    Args:
        row_of: the row of each segment, below `rows`; changed to its new number.
        rows: how many rows there are; each has a segment.
        splits: as many zeros as there are rows, and one more at least; row r gets
            `segments[splits[r]]` up to `segments[splits[r + 1]]`.
        segments: is filled with the numbers of segments, as many as are in a row.
    """
    numbers = np.full(rows, -1, row_of.dtype)
    known = np.int64(0)
    for segment in range(row_of.size):
        row = row_of[segment]
        if row < 0:
            continue
        number = np.int64(numbers[row])
        if number < 0:
            number = known
            numbers[row] = number
            known += 1
        row_of[segment] = number
        splits[number + 1] += 1
    for row in range(splits.size - 1):
        splits[row + 1] += splits[row]
    ends = splits[:rows].copy()
    for segment in range(row_of.size):
        row = row_of[segment]
        if row >= 0:
            segments[ends[row]] = segment
            ends[row] += 1
