"""PyTorch's CPU `randperm`, without PyTorch."""

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int64
from coredata.indices import mt19937_seed, next32
from coredata.indices.prefetch import prefetch

_BLOCK = 512
_WIDE = (2**32 - 1) // 20
"""From this length on PyTorch draws 64 bits for each element, and builds inside out."""


def torch_randperm(n: int, seed: int) -> Int64[np.ndarray, " n"]:
    """What `torch.randperm(n, generator=torch.Generator().manual_seed(seed))` gives.

    Below 214,748,364 elements: the element at i changes places with the one 32 random bits
    modulo (n - i) further on, from first to last. From there on: inside out, each new element i
    goes to 64 random bits modulo (i + 1), and what was there moves to the end. The generator uses
    the lower 32 bits of the seed.

    Raises:
        ValueError: a negative `n`.
    """
    if n < 0:
        raise ValueError(f"n: a permutation of {n} elements was asked for; n must be 0 or more")
    state = mt19937_seed(seed & 0xFFFFFFFF)
    permutation = np.arange(n, dtype=np.int64)
    if n < _WIDE:
        _swap_forward(permutation, state)
    else:
        _inside_out(permutation, state)
    return permutation


@kernel
def _swap_forward(permutation, state):
    """As in `shuffle_in_place`: draw for a block, prefetch all that it needs, then swap."""
    drawn = np.empty(_BLOCK, np.int64)
    last = np.int64(permutation.size) - 1
    for first in range(0, last, _BLOCK):
        block = min(np.int64(_BLOCK), last - first)
        for i in range(block):
            drawn[i] = first + i + next32(state) % (last + 1 - first - i)
            prefetch(permutation, drawn[i])
        for i in range(block):
            swapped = permutation[first + i]
            permutation[first + i] = permutation[drawn[i]]
            permutation[drawn[i]] = swapped


@kernel
def _inside_out(permutation, state):
    for i in range(permutation.size):
        high = np.uint64(next32(state))
        bits = (high << np.uint64(32)) | np.uint64(next32(state))
        place = np.int64(bits % np.uint64(i + 1))
        permutation[i] = permutation[place]
        permutation[place] = i
