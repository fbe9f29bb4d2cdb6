"""Memory for a batch: one block for all its fields."""

import ctypes
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import DTypeLike

from coredata.datasets.protocol import Batch

_ALIGNMENT = 64

Layout = tuple[int, tuple[tuple[str, tuple[int, ...], np.dtype, int], ...]]
"""Bytes of a block; name, shape, dtype of each field and where in the block it begins."""


def layout(fields: Mapping[str, tuple[tuple[int, ...], DTypeLike]]) -> Layout:
    """Fields, name -> (shape, dtype), one after the other, each from a cache line on."""
    size = 0
    places = []
    for name, (shape, kind) in fields.items():
        dtype = np.dtype(kind)
        places.append((name, shape, dtype, size))
        size += -(-math.prod(shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    return size, tuple(places)


def allocate(fields: Mapping[str, tuple[tuple[int, ...], DTypeLike]]) -> Batch:
    """Uninitialised arrays, field -> (shape, dtype), that lie in one block of memory."""
    return allocate_layout(layout(fields))


def allocate_layout(fields: Layout) -> Batch:
    """The same for a layout that was worked out before.

    One block, because the C library hands a freed block of the same size out again as it is,
    while several middling ones are often given back to the system and have to be paged in anew for
    every batch, which costs more than filling them. It begins at a cache line: wide stores that
    cross lines take twice as long.
    """
    size, places = fields
    block = np.empty(size + _ALIGNMENT, np.uint8)
    # A number from `ctypes` costs a third of what `block.ctypes.data` does.
    shift = -ctypes.addressof(ctypes.c_char.from_buffer(block)) % _ALIGNMENT
    return {
        name: np.ndarray(shape, dtype, block, shift + offset)
        for name, shape, dtype, offset in places
    }
