"""How Mersenne Twisters start from one number: the recurrence of Matsumoto and Nishimura (2002)."""

import numpy as np

from coredata._kernel import part


@part
def fill_words(state, seed, multiplier, shift, largest):
    """Fill all of `state` but its last number, which counts the words used up: all of them.

    Word i follows from the word w before it: multiplier × (w ⊕ (w >> shift)) + i, of which the
    bits of `largest` are kept. All but `state` are uint64.
    """
    words = state.size - 1
    word = seed
    for i in range(words):
        state[i] = word
        word = (multiplier * (word ^ (word >> shift)) + np.uint64(i + 1)) & largest
    state[words] = words
