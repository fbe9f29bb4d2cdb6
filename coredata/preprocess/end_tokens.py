"""The token that ends documents, put between those of a batch."""

from typing import Any

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int32, Int64, Integer


def insert_after(
    tokens: Int32[np.ndarray, " tokens"],
    ends: Int64[np.ndarray, " places"],
    token: int,
    dtype: np.dtype[Any],
) -> Integer[np.ndarray, " longer"]:
    """`tokens` with `token` put in behind the first `ends[i]` of them, for every i.

    Args:
        tokens: any.
        ends: ascending, each from 0 to the number of tokens.
        token: what to put in.
        dtype: uint16 to get that, if all values fit; anything else gives int32.
    """
    if dtype == np.uint16:
        narrow = np.empty(tokens.size + ends.size, np.uint16)
        if _insert(tokens, ends, np.int32(token), narrow):
            return narrow
    longer = np.empty(tokens.size + ends.size, np.int32)
    _insert(tokens, ends, np.int32(token), longer)
    return longer


@kernel
def _insert(tokens, ends, token, longer):
    """Whether all values are below 2^16, and none below 0."""
    read, write, above = np.int64(0), np.int64(0), token >> 16
    for place in range(len(ends) + 1):
        stop = np.int64(len(tokens) if place == len(ends) else ends[place])
        for position in range(stop - read):
            value = tokens[read + position]
            longer[write + position] = value
            above |= value >> 16
        write += stop - read
        read = stop
        if place < len(ends):
            longer[write] = token
            write += 1
    return above == 0
