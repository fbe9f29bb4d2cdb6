"""The Mersenne Twister MT19937 in compiled code, and the shuffle that NumPy makes of it.

`shuffle_in_place` permutes exactly as `numpy.random.RandomState(seed).shuffle` does: published
sample orders depend on it. The generator is Matsumoto and Nishimura's (1998), started from one
number in their usual way, which NumPy's legacy seeding and PyTorch's CPU generator share.

A state is an array of 625 numbers: the 624 words, and how many of them are used up.
"""

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Integer, UInt32

WORDS = 624
_MIDDLE = 397
_LARGEST_SEED = 2**32 - 1


def mt19937_seed(seed: int) -> UInt32[np.ndarray, "625"]:
    """Start a generator.

    Raises:
        ValueError: a seed outside 0 … 2^32 - 1.
    """
    if not 0 <= seed <= _LARGEST_SEED:
        raise ValueError(
            f"random_seed: {seed} is outside 0 … {_LARGEST_SEED}, the seeds of this generator. "
            f"Take for example {seed % (_LARGEST_SEED + 1)}"
        )
    state = np.empty(WORDS + 1, np.uint32)
    _seed(state, np.int64(seed))
    return state


def shuffle_in_place(array: Integer[np.ndarray, " n"], state: UInt32[np.ndarray, "625"]) -> None:
    """Permute `array` as `numpy.random.RandomState.shuffle` would, and move `state` on.

    Raises:
        TypeError: elements that are not 4 or 8 bytes long.
        ValueError: an array that cannot be written.
    """
    if array.dtype.itemsize not in (4, 8):
        raise TypeError(
            f"shuffle_in_place: the array is {array.dtype}; int32, uint32, int64 and uint64 are "
            "shuffled. Convert it, for example with array.astype('int64')"
        )
    if not array.flags.writeable:
        raise ValueError("shuffle_in_place: the array is read-only. Pass a copy: array.copy()")
    # One compiled version per width serves signed and unsigned elements.
    _shuffle(array.view(np.uint32 if array.dtype.itemsize == 4 else np.int64), state)


@kernel
def _seed(state, seed):
    word = seed
    for i in range(WORDS):
        state[i] = word
        word = (1812433253 * (word ^ (word >> 30)) + i + 1) & 0xFFFFFFFF
    state[WORDS] = WORDS


@kernel
def _next_words(state):
    """Replace all 624 words by the next 624."""
    for i in range(WORDS):
        following = np.int64(state[i + 1 if i + 1 < WORDS else 0])
        far = np.int64(state[i + _MIDDLE if i + _MIDDLE < WORDS else i + _MIDDLE - WORDS])
        mixed = (np.int64(state[i]) & 0x80000000) | (following & 0x7FFFFFFF)
        word = far ^ (mixed >> 1)
        if mixed & 1:
            word ^= 0x9908B0DF
        state[i] = word
    state[WORDS] = 0


@kernel
def next32(state):
    """The next 32 random bits, as an int64."""
    if state[WORDS] == WORDS:
        _next_words(state)
    position = np.int64(state[WORDS])
    state[WORDS] = position + 1
    word = np.int64(state[position])
    word ^= word >> 11
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    word ^= word >> 18
    return word


@kernel
def bounded(state, largest, mask):
    """A number in 0 … `largest`: bits under `mask` (all ones, >= largest) until they fit.

    As NumPy, two words are drawn, the high one first, where `largest` needs more than 32 bits.
    """
    while True:
        if largest <= 0xFFFFFFFF:
            value = next32(state) & mask
        else:
            high = next32(state)
            value = ((high << 32) | next32(state)) & mask
        if value <= largest:
            return value


@kernel
def _shuffle(array, state):
    mask = np.int64(1)
    while mask < array.size - 1:
        mask = (mask << 1) | 1
    for last in range(np.int64(array.size) - 1, 0, -1):
        if last <= mask >> 1:
            mask >>= 1
        other = bounded(state, np.int64(last), mask)
        swapped = array[last]
        array[last] = array[other]
        array[other] = swapped
