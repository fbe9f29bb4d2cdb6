"""The 64-bit Mersenne Twister in compiled code, and a shuffle of rows by it.

The generator is Nishimura and Matsumoto's MT19937-64 (2000), C++'s `std::mt19937_64`: another
recurrence than the 32-bit one, over 312 words of 64 bits. Sentence maps are shuffled with it.

A state is an array of 313 numbers: the 312 words, and how many of them are used up.
"""

import numpy as np

from coredata._kernel import kernel, part
from coredata._typing import Integer
from coredata.indices.prefetch import prefetch
from coredata.indices.seeding import fill_words

WORDS = 312
_MIDDLE = 156
_LARGEST_SEED = 2**64 - 1
_BLOCK = 256
"""Rows drawn ahead: enough to overlap reads, few enough to stay in the cache."""


def mt19937_64_seed(seed: int) -> Integer[np.ndarray, "313"]:
    """Start a generator: uint64 words.

    Raises:
        ValueError: a seed outside 0 … 2^64 - 1.
    """
    if not 0 <= seed <= _LARGEST_SEED:
        raise ValueError(
            f"seed: {seed} is outside 0 … {_LARGEST_SEED}, the seeds of this generator. "
            f"Take for example {seed % (_LARGEST_SEED + 1)}"
        )
    state = np.empty(WORDS + 1, np.uint64)
    _seed(state, np.uint64(seed))
    return state


def shuffle_rows(rows: Integer[np.ndarray, "n width"], state: Integer[np.ndarray, "313"]) -> None:
    """Permute `rows` in place, and move `state` on.

    From the last row i to the second, row i changes places with row (next number modulo i + 1).

    Raises:
        ValueError: rows that cannot be written or do not lie one after the other.
    """
    if not (rows.flags.writeable and rows.flags.c_contiguous):
        raise ValueError(
            "shuffle_rows: the array is read-only or strided. Pass a copy: numpy.array(rows)"
        )
    _shuffle_rows(rows, state)


@kernel
def _seed(state, seed):
    fill_words(state, seed, np.uint64(6364136223846793005), np.uint64(62), np.uint64(_LARGEST_SEED))


@part
def _next_words(state):
    """Replace all 312 words by the next 312."""
    for i in range(WORDS - _MIDDLE):
        state[i] = _twist(state[i], state[i + 1], state[i + _MIDDLE])
    state[WORDS] = state[0]  # the last word is followed by the first
    for i in range(WORDS - _MIDDLE, WORDS):
        state[i] = _twist(state[i], state[i + 1], state[i + _MIDDLE - WORDS])
    state[WORDS] = np.uint64(0)


@part
def _twist(word, following, far):
    mixed = (word & np.uint64(0xFFFFFFFF80000000)) | (following & np.uint64(0x7FFFFFFF))
    odd = (mixed & np.uint64(1)) * np.uint64(0xB5026F5AA96619E9)
    return far ^ (mixed >> np.uint64(1)) ^ odd


@kernel
def next64(state):
    """The next 64 random bits, as a uint64."""
    if state[WORDS] == np.uint64(WORDS):
        _next_words(state)
    position = np.int64(state[WORDS])
    state[WORDS] = np.uint64(position + 1)
    word = state[position]
    word ^= (word >> np.uint64(29)) & np.uint64(0x5555555555555555)
    word ^= (word << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    word ^= (word << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    return word ^ (word >> np.uint64(43))


@kernel
def _shuffle_rows(rows, state):
    """A block at a time: its partners are drawn and prefetched, then rows change places."""
    drawn = np.empty(_BLOCK, np.int64)
    width = np.int64(rows.shape[1])
    flat = rows.reshape(-1)
    last = np.int64(rows.shape[0]) - 1
    while last > 0:
        block = min(np.int64(_BLOCK), last)
        for i in range(block):
            drawn[i] = np.int64(next64(state) % np.uint64(last - i + 1))
            prefetch(flat, drawn[i] * width)
        for i in range(block):
            here = (last - i) * width
            there = drawn[i] * width
            for column in range(width):
                swapped = flat[here + column]
                flat[here + column] = flat[there + column]
                flat[there + column] = swapped
        last -= block
