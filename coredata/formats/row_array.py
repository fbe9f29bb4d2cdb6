"""The objects of a file that is one JSON array, found without parsing the whole of it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int64, UInt8
from coredata.formats.rows import DamagedFileError

_CHUNK = 1 << 20
_DEPTH, _STRING, _ESCAPE, _STRAY = range(4)


class Element(NamedTuple):
    """One object of the array as it stands in the file.

    Attributes:
        offset: of its first byte, in bytes of the (decompressed) file.
        data: its bytes, from brace to brace; up to the end of the file if that comes first.
        complete: whether it is closed.
    """

    offset: int
    data: bytes
    complete: bool


def array_elements(read: Callable[[int], bytes], path: str) -> Iterator[Element]:
    """The objects of a JSON array, in order. Memory: the longest of them, and some megabytes.

    Args:
        read: gives the next bytes of the file, about as many as it is asked for; none at the end.
        path: what errors call the file.

    Raises:
        DamagedFileError: something other than objects in the array, or something behind it.
    """
    state = np.zeros(4, np.int64)
    state[_STRAY] = -1
    starts, ends = np.empty(_CHUNK, np.int64), np.empty(_CHUNK, np.int64)
    offset, begun = 0, -1
    pieces: list[bytes] = []
    while chunk := read(_CHUNK):
        for at in range(0, len(chunk), _CHUNK):
            part = chunk[at : at + _CHUNK]
            opened, closed = scan_array(np.frombuffer(part, np.uint8), state, starts, ends)
            first = 0
            for number in range(closed):
                if begun < 0:
                    begun = offset + int(starts[first])
                    first += 1
                end = int(ends[number])
                pieces.append(part[max(begun - offset, 0) : end])
                yield Element(begun, b"".join(pieces), True)
                pieces, begun = [], -1
            if first < opened:
                begun = offset + int(starts[first])
            if begun >= 0:
                pieces.append(part[max(begun - offset, 0) :])
            if state[_STRAY] >= 0:
                raise DamagedFileError(
                    f"{path}, byte {offset + int(state[_STRAY])}: this is one JSON array, and in "
                    "it, or behind it, stands something other than an object. A row looks like "
                    '{"text": "Once upon a time"}'
                )
            offset += len(part)
    if begun >= 0:
        yield Element(begun, b"".join(pieces), False)


@kernel
def scan_array(
    chunk: UInt8[np.ndarray, " bytes"],
    state: Int64[np.ndarray, " 4"],
    starts: Int64[np.ndarray, " room"],
    ends: Int64[np.ndarray, " room"],
) -> tuple[Any, Any]:
    """Where objects begin and end in the next bytes of an array of objects.

    It stops at the first stray byte. `state` goes from call to call: depth of brackets (-1 behind
    the array), in a string, after a backslash, the stray byte or -1. Bytes of UTF-8 beyond ASCII
    are never brackets or quotes, so text needs no decoding.

    Returns:
        How many objects begin, and how many end; `ends` are past the closing brace.
    """
    depth, string, escape = state[0], state[1], state[2]
    opened = closed = np.int64(0)
    for at in range(len(chunk)):
        byte = chunk[at]
        if string:
            if escape:
                escape = np.int64(0)
            elif byte == 0x5C:
                escape = np.int64(1)
            elif byte == 0x22:
                string = np.int64(0)
            continue
        opens = byte == 0x7B or byte == 0x5B
        if depth == 1 and byte == 0x7B:
            starts[opened] = at
            opened += 1
        elif byte > 0x20 and (depth < 0 or (depth == 1 and byte != 0x5D and byte != 0x2C)):
            state[3] = at
            break
        if opens:
            depth += 1
        elif byte == 0x7D or byte == 0x5D:
            depth -= 1
            if depth == 1:
                ends[closed] = at + 1
                closed += 1
            elif depth == 0:
                depth = np.int64(-1)
        elif byte == 0x22:
            string = np.int64(1)
    state[0], state[1], state[2] = depth, string, escape
    return opened, closed
