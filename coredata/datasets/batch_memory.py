"""Memory for a batch: one block for all its fields."""

import math
from collections.abc import Mapping

import numpy as np

from coredata.datasets.protocol import Batch

_ALIGNMENT = 64


def allocate(fields: Mapping[str, tuple[tuple[int, ...], str]]) -> Batch:
    """Uninitialised arrays, field -> (shape, dtype), that lie in one block of memory.

    One block, because the C library hands a freed block of the same size out again as it is,
    while several middling ones are often given back to the system and have to be paged in anew for
    every batch, which costs more than filling them.
    """
    offsets, size = {}, 0
    for name, (shape, dtype) in fields.items():
        offsets[name] = size
        length = math.prod(shape) * np.dtype(dtype).itemsize
        size += -(-length // _ALIGNMENT) * _ALIGNMENT
    block = np.empty(size, np.uint8)
    return {
        name: np.ndarray(shape, dtype, buffer=block, offset=offsets[name])
        for name, (shape, dtype) in fields.items()
    }
