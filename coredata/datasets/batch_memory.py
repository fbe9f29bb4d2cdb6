"""Memory for a batch: one block for all its fields."""

import ctypes
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from coredata.datasets.protocol import Batch

_ALIGNMENT = 64

Fields = Mapping[str, tuple[tuple[int, ...], DTypeLike]]
"""Name -> shape, dtype."""


def layout(fields: Fields) -> np.dtype:
    """A structured dtype whose one element is a batch: each field begins at a cache line."""
    size = 0
    offsets = []
    for shape, kind in fields.values():
        offsets.append(size)
        size += -(-math.prod(shape) * np.dtype(kind).itemsize // _ALIGNMENT) * _ALIGNMENT
    formats = [(kind, shape) for shape, kind in fields.values()]
    parts: Any = {"names": list(fields), "formats": formats, "offsets": offsets, "itemsize": size}
    return np.dtype(parts)


def allocate(fields: Fields) -> Batch:
    """Uninitialised arrays, field -> (shape, dtype), that lie in one block of memory."""
    return allocate_layout(layout(fields))


def allocate_layout(fields: np.dtype) -> Batch:
    """The same for a layout that was worked out before.

    One block, because the C library hands a freed block of the same size out again as it is,
    while several middling ones are often given back to the system and have to be paged in anew for
    every batch, which costs more than filling them. It begins at a cache line: wide stores that
    cross lines take twice as long.
    """
    block: Any = np.empty(fields.itemsize + _ALIGNMENT, np.uint8)
    # A number from `ctypes` costs a third of what `block.ctypes.data` does.
    shift = -ctypes.addressof(ctypes.c_char.from_buffer(block)) % _ALIGNMENT
    whole: np.ndarray = np.ndarray((), fields, block, shift)
    return {name: whole[name] for name in fields.names or ()}
