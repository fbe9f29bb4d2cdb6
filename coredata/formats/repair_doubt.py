"""What speaks against the dtype that someone gives for tokens whose index is lost."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from coredata.formats.verify_scan import scan_tokens
from coredata.storage import ByteReader, open_reader

MOST_IDS = 1 << 24
"""More than any vocabulary has."""

_BLOCK = 1 << 22
_WIDEST = 8
"""Bytes of the widest ids that the format has."""
_MANY = 32
"""So many ids larger than all at the other places are not there by chance."""


def dtype_doubt(bin_path: str, dtype: np.dtype[Any], eod: int, vocab_size: int | None) -> str:
    """Why `bin_path` does not hold ids of `dtype`; "" if nothing in it says so.

    With a vocabulary size, every id must be in it. Without: none may be negative or larger than
    any vocabulary; and if `eod` is 0, which ends a file of wider ids too, they must not look like
    parts of those.
    """
    last = int(np.iinfo(dtype).max)
    if vocab_size is not None and vocab_size > last + 1:
        return (
            f"{dtype.name} has ids up to {last:,}, too few for a vocabulary of {vocab_size:,}; "
            "give the dtype and the vocabulary that it was written with"
        )
    limit = MOST_IDS if vocab_size is None else vocab_size
    scan = scan_tokens(open_reader(bin_path, mmap=False), dtype, limit)
    if scan.outside and vocab_size is not None:
        return (
            f"read as {dtype.name}, {scan.outside:,} ids are not in a vocabulary of {vocab_size}, "
            f"the first at token {scan.first_outside:,}; give the dtype and the vocabulary that it "
            "was written with"
        )
    if scan.outside:
        return (
            f"read as {dtype.name}, {scan.outside:,} ids are negative or not below {limit:,}, the "
            f"first at token {scan.first_outside:,}; give the dtype that it was written with (if "
            "it is this one, --vocab-size too)"
        )
    if vocab_size is None and eod == 0:
        return _parts_of_wider_ids(bin_path, dtype)
    return ""


def _parts_of_wider_ids(bin_path: str, dtype: np.dtype[Any]) -> str:
    """Are the ids parts of wider ones? The id 0 ends the file and its documents then too.

    If they are, the last few are 0, and at the places of the uppermost parts is nothing as large
    as much that is at those of the lowest.
    """
    reader = open_reader(bin_path, mmap=False)
    for parts in (8, 4, 2):
        width = parts * dtype.itemsize
        if width > _WIDEST or reader.size == 0 or reader.size % width:
            continue
        if np.frombuffer(reader.read(reader.size - width, width), np.uint8).any():
            continue
        largest = max(int(ids[:, -1].max()) for ids in _rows(reader, dtype, parts))
        larger = sum(
            int(np.count_nonzero(ids[:, 0] > largest)) for ids in _rows(reader, dtype, parts)
        )
        if larger >= _MANY:
            return (
                f"read as {dtype.name}, every {parts}{'nd' if parts == 2 else 'th'} id is at most "
                f"{largest:,}, and {larger:,} of the others are larger, as where an id takes "
                f"{width} bytes; give the dtype that it was written with (if it is this one, "
                "--vocab-size too)"
            )
    return ""


def _rows(reader: ByteReader, dtype: np.dtype[Any], parts: int) -> Iterator[np.ndarray]:
    """The ids of a file, (n, parts) at a time."""
    width = parts * dtype.itemsize
    block = max(_BLOCK // width, 1) * width
    for start in range(0, reader.size, block):
        data = np.frombuffer(reader.read(start, min(block, reader.size - start)), np.uint8)
        yield data.view(dtype).reshape(-1, parts)
