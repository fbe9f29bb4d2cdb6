"""numpy's legacy random draws, inside kernels: those of `numpy.random.RandomState(seed)`.

numpy keeps these streams frozen. Each sample of BERT and T5 has a generator of its own, so a draw
here must be the draw that the same call makes there, and use up as many words of the generator.
The state is that of `coredata.indices.mt19937`.
"""

import numpy as np

from coredata._kernel import kernel
from coredata.indices.mt19937 import bounded, next32

_TWO_26 = 67108864.0
_TWO_53 = 9007199254740992.0


@kernel
def draw_share(state):
    """`random()`: a float64 in [0, 1), a multiple of 2^-53, from two words."""
    high = np.float64(next32(state) >> 5)
    low = np.float64(next32(state) >> 6)
    return (high * _TWO_26 + low) / _TWO_53


@kernel
def draw_below(state, bound):
    """`randint(0, bound)`, 1 <= bound <= 2^32: bits under a mask until they fit; none for 1."""
    largest = np.int64(bound) - 1
    if largest == 0:
        return np.int64(0)
    mask = np.int64(1)
    while mask < largest:
        mask = (mask << 1) | 1
    return bounded(state, largest, mask)


@kernel
def shuffle_first(array, count, state):
    """`shuffle` of a list of `count` items: of the first elements of `array`."""
    last = np.int64(count) - 1
    mask = np.int64(1)
    while mask < last:
        mask = (mask << 1) | 1
    while last > 0:
        if last <= mask >> 1:
            mask >>= 1
        other = bounded(state, last, mask)
        swapped = array[last]
        array[last] = array[other]
        array[other] = swapped
        last -= 1


@kernel
def draw_size(state, cutoffs):
    """1 + how many of the ascending `cutoffs` are at most a drawn share.

    `choice` with probabilities and `geometric` both invert a distribution function at one share;
    see `size_cutoffs`.
    """
    share = draw_share(state)
    size = np.int64(1)
    for cutoff in cutoffs:
        size += share >= cutoff
    return size
