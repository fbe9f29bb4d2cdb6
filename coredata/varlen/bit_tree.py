"""A set of small numbers that knows its least member from a number on, in compiled code.

A tree whose nodes are words of 64 bits, one bit a child: of 8,192 numbers three words are looked
at, mostly one. `exists` holds its levels, the leaves first; `starts` says where each begins, and
where the last ends.
"""

import numpy as np

from coredata._bits import lowest_bit
from coredata._kernel import kernel


@kernel
def empty_tree(largest):
    """`(exists, starts)` of a set of numbers 0 … largest; nothing is in it."""
    levels = np.int64(1)
    while largest >> (6 * levels) > 0:
        levels += 1
    starts = np.zeros(levels + 1, np.int64)
    entries = np.int64(largest + 1)
    for level in range(levels):
        # There is always a place after the last entry, so that it can be looked at.
        entries = (entries >> 6) + 1
        starts[level + 1] = starts[level] + entries
    return np.zeros(starts[levels], np.int64), starts


@kernel
def least(exists, starts, number):
    """The least member from `number` on; -1 if there is none."""
    for level in range(starts.size - 1):
        word = exists[starts[level] + (number >> 6)] & (np.int64(-1) << (number & 63))
        if word != 0:
            found = ((number >> 6) << 6) + lowest_bit(word)
            for below in range(level - 1, -1, -1):
                found = (found << 6) + lowest_bit(exists[starts[below] + found])
            return found
        number = (number >> 6) + 1
    return np.int64(-1)


@kernel
def insert(exists, starts, number):
    """Make `number` a member."""
    for level in range(starts.size - 1):
        at = starts[level] + (number >> 6)
        before = exists[at]
        exists[at] = before | (np.int64(1) << (number & 63))
        if before != 0:
            return
        number >>= 6


@kernel
def remove(exists, starts, number):
    """Make `number`, a member, none."""
    for level in range(starts.size - 1):
        at = starts[level] + (number >> 6)
        exists[at] &= ~(np.int64(1) << (number & 63))
        if exists[at] != 0:
            return
        number >>= 6
