"""A fast checksum of arrays on disk: finds damage, defends against nobody."""

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Shaped


def checksum(array: Shaped[np.ndarray, "..."]) -> str:
    """64-bit checksum of the bytes of a C-contiguous array, 16 hexadecimal digits.

    It depends on the order of the bytes and runs at the speed of memory: eight independent
    multiply-and-rotate chains over 64-bit words (FNV-1a by words, with a rotation so that high bits
    reach low ones), folded into one at the end.
    """
    if not array.flags.c_contiguous:
        raise ValueError("checksum: the array is not C-contiguous; use np.ascontiguousarray")
    whole = array.data if array.size else memoryview(b"")
    return checksum_of_bytes(whole.cast("B").toreadonly())


def checksum_of_bytes(data: bytes | memoryview) -> str:
    """The checksum of bytes; `data` may not be written to."""
    words = len(data) // 8
    tail = int.from_bytes(data[8 * words :], "little")
    body = np.frombuffer(data, np.uint64, words) if words else _NO_WORDS
    value = _checksum(body, np.uint64(tail), np.uint64(len(data)))
    return f"{int(value):016x}"


_NO_WORDS = np.frombuffer(b"", np.uint64)


@kernel
def _checksum(words, tail, size):
    prime = np.uint64(0x9E3779B185EBCA87)
    a = np.uint64(1)
    b = np.uint64(2)
    c = np.uint64(3)
    d = np.uint64(4)
    e = np.uint64(5)
    f = np.uint64(6)
    g = np.uint64(7)
    h = np.uint64(8)
    full = len(words) - len(words) % 8
    for i in range(0, full, 8):
        a = _mix(a, words[i], prime)
        b = _mix(b, words[i + 1], prime)
        c = _mix(c, words[i + 2], prime)
        d = _mix(d, words[i + 3], prime)
        e = _mix(e, words[i + 4], prime)
        f = _mix(f, words[i + 5], prime)
        g = _mix(g, words[i + 6], prime)
        h = _mix(h, words[i + 7], prime)
    value = size
    for i in range(full, len(words)):
        value = _mix(value, words[i], prime)
    value = _mix(value, tail, prime)
    for lane in (a, b, c, d, e, f, g, h):
        value = _mix(value, lane, prime)
    return value ^ (value >> np.uint64(32))


@kernel
def _mix(state, word, prime):
    state = (state ^ word) * prime
    return (state << np.uint64(29)) | (state >> np.uint64(35))
