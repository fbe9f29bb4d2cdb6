"""The passes over a token file that a check makes, compiled; and the pass over its tokens."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Shaped
from coredata.storage import ByteReader

SOUND, NEGATIVE_LENGTH, WRONG_POINTER = range(3)

_BLOCK = 1 << 22
"""Bytes read and looked at together: few system calls, and still in the processor's cache."""
_THREADS = 2
_AHEAD = 4

Progress = Callable[[int], None]
"""Called with the number of bytes that were just looked at."""


@dataclass(frozen=True)
class TokenScan:
    """What was found among the ids of a `.bin` file.

    Attributes:
        largest: the largest id; -1 if there is none.
        outside: ids that are negative, or not below the limit.
        first_outside: place of the first of them, in tokens from the start; -1 if there is none.
    """

    largest: int
    outside: int
    first_outside: int


def scan_tokens(
    reader: ByteReader,
    dtype: np.dtype[Any],
    limit: int,
    progress: Progress | None = None,
    block: int = _BLOCK,
) -> TokenScan:
    """Look for ids outside 0 … `limit` − 1 in a whole `.bin` file of an integer dtype.

    Blocks are read and looked at by two threads, so that the time is about that of reading.
    Memory is bounded: each thread has one block.
    """
    size = reader.size - reader.size % dtype.itemsize
    block = max(block // dtype.itemsize, 1) * dtype.itemsize
    pending: deque[Future[TokenScan]] = deque()
    found = [TokenScan(-1, 0, -1)]
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="coredata-verify") as pool:
        for start in range(0, size, block):
            if len(pending) == _AHEAD:
                found.append(pending.popleft().result())
            length = min(block, size - start)
            pending.append(pool.submit(_scan_block, reader, dtype, limit, start, length))
            if progress is not None:
                progress(length)
        found.extend(scan.result() for scan in pending)
    return TokenScan(
        largest=max(scan.largest for scan in found),
        outside=sum(scan.outside for scan in found),
        first_outside=next((scan.first_outside for scan in found if scan.outside), -1),
    )


def _scan_block(
    reader: ByteReader, dtype: np.dtype[Any], limit: int, start: int, length: int
) -> TokenScan:
    data = np.frombuffer(reader.read(start, length), np.uint8)
    top = int(largest_id(data.view(f"u{dtype.itemsize}")))  # a negative id is a very large one
    if top < min(limit, int(np.iinfo(dtype).max) + 1):
        return TokenScan(top, 0, -1)
    ids = data.view(dtype)
    wrong = (ids < 0) | (ids >= limit)
    first = start // dtype.itemsize + int(np.argmax(wrong))
    return TokenScan(int(ids.max()), int(np.count_nonzero(wrong)), first)


@kernel
def largest_id(ids):
    """The largest of unsigned `ids`, of which there is at least one."""
    largest = ids[0]
    for i in range(ids.size):
        largest = max(largest, ids[i])
    return largest


@kernel
def first_bad_sequence(lengths, pointers, itemsize, expected):
    """What is wrong (or SOUND), with which sequence, and where that one should begin.

    `expected` is the byte at which the first should begin. If all are sound, the number is their
    count and the byte that at which they end.
    """
    for i in range(lengths.size):
        if lengths[i] < 0:
            return NEGATIVE_LENGTH, np.int64(i), expected
        if pointers[i] != expected:
            return WRONG_POINTER, np.int64(i), expected
        expected += np.int64(lengths[i]) * itemsize
    return SOUND, np.int64(lengths.size), expected


@kernel
def first_descent(documents):
    """The first entry that is larger than the one after it; -1 if there is none."""
    for i in range(documents.size - 1):
        if documents[i] > documents[i + 1]:
            return np.int64(i)
    return np.int64(-1)


def aligned(values: Shaped[np.ndarray, " n"]) -> Shaped[np.ndarray, " n"]:
    """A copy that kernels read fast: arrays in an `.idx` file lie at odd addresses."""
    return np.array(values)
