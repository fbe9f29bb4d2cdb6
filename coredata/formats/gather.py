"""Many token ranges copied at once: first a plan that checks every range, then the copy."""

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int32, Int64, Shaped

SPANS_FIT = 0
SPANS_UNALIGNED = 1
"""All spans fit, but some begin in the middle of an item of the `.bin` file."""
NO_SUCH_SEQUENCE = 2
SPAN_LEAVES_SEQUENCE = 3
SPAN_LEAVES_OUTPUT = 4
SEQUENCE_LEAVES_FILE = 5


@kernel
def plan_spans(
    sequence_lengths: Int32[np.ndarray, " sequences"],
    sequence_pointers: Int64[np.ndarray, " sequences"],
    itemsize: int,
    file_size: int,
    sequences: Int64[np.ndarray, " spans"],
    offsets: Int64[np.ndarray, " spans"],
    lengths: Int64[np.ndarray, " spans"],
    out_size: int,
    out_offsets: Int64[np.ndarray, " spans"],
    starts: Int64[np.ndarray, " spans"],
) -> tuple[int, int]:
    """Find where each span begins in the file (`starts`, bytes), and check all its borders.

    Returns a status and the first span it is about. Nothing is trusted: lengths and pointers may
    be any numbers, and no comparison here can overflow.
    """
    status = SPANS_FIT
    for i in range(sequences.size):
        sequence = sequences[i]
        if sequence < 0 or sequence >= sequence_lengths.size:
            return NO_SUCH_SEQUENCE, i
        offset, length = offsets[i], lengths[i]
        available = np.int64(sequence_lengths[sequence])
        if offset < 0 or length < 0 or offset > available or length > available - offset:
            return SPAN_LEAVES_SEQUENCE, i
        if out_offsets[i] < 0 or out_offsets[i] > out_size or length > out_size - out_offsets[i]:
            return SPAN_LEAVES_OUTPUT, i
        pointer = sequence_pointers[sequence]
        if pointer < 0 or pointer > file_size or (offset + length) * itemsize > file_size - pointer:
            return SEQUENCE_LEAVES_FILE, i
        starts[i] = pointer + offset * itemsize
        if starts[i] % itemsize != 0:
            status = SPANS_UNALIGNED
    return status, 0


@kernel
def gather(
    tokens: Shaped[np.ndarray, " tokens"],
    starts: Int64[np.ndarray, " spans"],
    itemsize: int,
    lengths: Int64[np.ndarray, " spans"],
    out: Shaped[np.ndarray, " out"],
    out_offsets: Int64[np.ndarray, " spans"],
) -> None:
    """Copy span i, `lengths[i]` tokens from byte `starts[i]`, to `out[out_offsets[i] :]`.

    The spans have been checked; `starts` are multiples of `itemsize`. Values are converted to
    the dtype of `out`. Slices keep the test for negative indices out of the inner loop, which is
    then vectorised.
    """
    for i in range(starts.size):
        start = starts[i] // itemsize
        source = tokens[start : start + lengths[i]]
        target = out[out_offsets[i] : out_offsets[i] + lengths[i]]
        for j in range(source.size):
            target[j] = source[j]
