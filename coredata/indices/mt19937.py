"""The Mersenne Twister MT19937 in compiled code, and the shuffle that NumPy makes of it.

`shuffle_in_place` permutes exactly as `numpy.random.RandomState(seed).shuffle` does: published
sample orders depend on it. The generator is Matsumoto and Nishimura's (1998), started from one
number in their usual way, which NumPy's legacy seeding and PyTorch's CPU generator share.

A state is an array of 625 numbers: the 624 words, and how many of them are used up.
"""

import numpy as np

from coredata._kernel import kernel, part
from coredata._typing import Integer, UInt32
from coredata.indices.prefetch import prefetch
from coredata.indices.seeding import fill_words

WORDS = 624
_MIDDLE = 397
_LARGEST_SEED = 2**32 - 1
_ONE_WORD = 2**32
"""Elements among which 32 random bits can choose."""
_BLOCK = 512
"""Elements drawn ahead: enough to overlap reads, few enough to stay in the cache."""


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
    # NumPy starts its own one in the same way: nothing need be compiled.
    words = np.random.RandomState(seed).get_state(legacy=False)["state"]["key"]
    return np.append(words, np.uint32(WORDS))


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
    words = array.view(np.uint32 if array.dtype.itemsize == 4 else np.int64)
    if words.size > _ONE_WORD:
        _shuffle_wide(words, state, _ONE_WORD)
    _shuffle(words[:_ONE_WORD], state, np.empty(WORDS, np.uint32), np.empty(_BLOCK, np.uint32))


@part
def restart(state, seed):
    """Start the generator of a state anew, inside a kernel; `seed` is an int64, 0 … 2^32 - 1."""
    fill_words(
        state, np.uint64(seed), np.uint64(1812433253), np.uint64(30), np.uint64(_LARGEST_SEED)
    )


@part
def _next_words(state):
    """Replace all 624 words by the next 624. Two loops, each without a remainder: vectorised."""
    for i in range(WORDS - _MIDDLE):
        state[i] = _twist(state[i], state[i + 1], state[i + _MIDDLE])
    state[WORDS] = state[0]  # the last word is followed by the first
    for i in range(WORDS - _MIDDLE, WORDS):
        state[i] = _twist(state[i], state[i + 1], state[i + _MIDDLE - WORDS])
    state[WORDS] = 0


@part
def _twist(word, following, far):
    mixed = (word & np.uint32(0x80000000)) | (following & np.uint32(0x7FFFFFFF))
    return far ^ (mixed >> np.uint32(1)) ^ ((mixed & np.uint32(1)) * np.uint32(0x9908B0DF))


@part
def _temper(word):
    word ^= word >> np.uint32(11)
    word ^= (word << np.uint32(7)) & np.uint32(0x9D2C5680)
    word ^= (word << np.uint32(15)) & np.uint32(0xEFC60000)
    return word ^ (word >> np.uint32(18))


@kernel
def next32(state):
    """The next 32 random bits, as an int64."""
    if state[WORDS] == WORDS:
        _next_words(state)
    position = np.int64(state[WORDS])
    state[WORDS] = position + 1
    return np.int64(_temper(state[position]))


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
def _shuffle_wide(array, state, shortest):
    """The steps of the shuffle down to the first `shortest` elements, one by one."""
    for last in range(np.int64(array.size) - 1, shortest - 1, -1):
        mask = np.int64(1)
        while mask < last:
            mask = (mask << 1) | 1
        other = bounded(state, np.int64(last), mask)
        swapped = array[last]
        array[last] = array[other]
        array[other] = swapped


@kernel
def _shuffle(array, state, words, drawn):
    """Shuffle at most 2^32 elements, a block at a time.

    The elements of a block are drawn first, all of them are prefetched, then they change places:
    the speed is that of drawing and of many overlapping reads, not of one read after the other.
    `words` and `drawn` are room for the generator's next words and for a block.
    """
    used = np.int64(state[WORDS])
    for i in range(WORDS):
        words[i] = _temper(state[i])
    last = np.int64(array.size) - 1
    mask = np.int64(1)
    while mask < last:
        mask = (mask << 1) | 1
    while last > 0:
        while last <= mask >> 1:
            mask >>= 1
        # All elements of a block are drawn under one mask.
        block = last - (mask >> 1)
        if block > _BLOCK:
            block = np.int64(_BLOCK)
        n = np.int64(0)
        while n < block:
            if used == WORDS:
                _next_words(state)
                for i in range(WORDS):
                    words[i] = _temper(state[i])
                used = np.int64(0)
            end = used + block - n
            if end > WORDS:
                end = np.int64(WORDS)
            for i in range(used, end):
                value = np.int64(words[i]) & mask
                drawn[n] = value
                n += value <= last - n
            used = end
        for i in range(block):
            prefetch(array, np.int64(drawn[i]))
        for i in range(block):
            other = np.int64(drawn[i])
            swapped = array[last - i]
            array[last - i] = array[other]
            array[other] = swapped
        last -= block
    state[WORDS] = used
