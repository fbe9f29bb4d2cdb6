"""Where documents end, read from the tokens."""

from typing import Any

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Bool, Int32, Int64
from coredata.formats.layout import pointer_chunks
from coredata.formats.paths import get_bin_path
from coredata.storage import open_reader

LONGEST = 2**31 - 1
"""Tokens of the longest sequence that the format holds."""

_BLOCK = 1 << 22


def ends_with(
    path_prefix: str,
    lengths: Int32[np.ndarray, " sequences"],
    dtype: np.dtype[Any],
    first: int,
    eod: int,
) -> Bool[np.ndarray, " rest"]:
    """For each sequence from number `first` on, whether its last token is `eod`.

    `lengths` are those of all sequences, which lie end to end in the `.bin` file.
    """
    reader = open_reader(get_bin_path(path_prefix))
    view = reader.view()
    tokens = np.frombuffer(b"" if view is None else view.data, np.uint8).view(dtype)
    found = [np.empty(0, np.bool_)]
    begin = 0
    for pointers in pointer_chunks(lengths, dtype.itemsize):
        end = begin + pointers.size
        if end > first:
            skip = max(first - begin, 0)
            sizes = lengths[begin + skip : end].astype(np.int64)
            last = pointers[skip:] // dtype.itemsize + sizes - 1
            ends = np.zeros(sizes.size, np.bool_)
            ends[sizes > 0] = tokens[last[sizes > 0]] == eod
            found.append(ends)
        begin = end
    return np.concatenate(found)


def document_lengths(
    bin_path: str, dtype: np.dtype[Any], eod: int
) -> tuple[Int64[np.ndarray, " documents"], int]:
    """Lengths of the documents that end in `eod`, and how many tokens come after the last.

    One pass, block by block.
    """
    reader = open_reader(bin_path, mmap=False)
    limits = np.iinfo(dtype)
    ends = [np.empty(0, np.int64)]
    block = _BLOCK // dtype.itemsize * dtype.itemsize
    for start in range(0, reader.size if limits.min <= eod <= limits.max else 0, block):
        data = np.frombuffer(reader.read(start, min(block, reader.size - start)), np.uint8)
        ids = data.view(f"u{dtype.itemsize}")
        room = np.empty(ids.size, np.int64)
        count = ends_in(ids, ids.dtype.type(eod), room)
        ends.append(room[:count] + start // dtype.itemsize)
    after = np.concatenate(ends) + 1
    rest = reader.size // dtype.itemsize - int(after[-1] if after.size else 0)
    return np.diff(after, prepend=0), rest


@kernel
def ends_in(ids, eod, places):
    """Write where `eod` is into `places`; returns how often."""
    count = np.int64(0)
    for i in range(ids.size):
        if ids[i] == eod:
            places[count] = i
            count += 1
    return count
