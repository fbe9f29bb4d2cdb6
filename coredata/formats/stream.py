"""A token file's tokens in order, in pieces of bounded size."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from coredata._typing import Shaped
from coredata.formats.errors import DTypeError
from coredata.formats.indexed import IndexedDataset

_CHUNK = 1 << 22


def token_chunks(
    source: IndexedDataset, dtype: np.dtype[Any], chunk: int = _CHUNK, start: int = 0
) -> Iterator[Shaped[np.ndarray, " chunk"]]:
    """All tokens from number `start` on, as `dtype`, at most `chunk` at a time.

    Sequences are found through their pointers, and split where a piece is full.
    """
    lengths = source.sequence_lengths
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if ends.size else 0
    for begin in range(start, total, chunk):
        stop = min(begin + chunk, total)
        first = int(np.searchsorted(ends, begin, "right"))
        last = int(np.searchsorted(ends, stop, "left")) + 1
        starts = ends[first:last] - lengths[first:last]
        taken_from = np.maximum(starts, begin)
        taken_to = np.minimum(ends[first:last], stop)
        out = np.empty(stop - begin, dtype)
        source.read_into(
            np.arange(first, last, dtype=np.int64),
            taken_from - starts,
            taken_to - taken_from,
            out,
            taken_from - begin,
        )
        yield out


def check_dtype(source: IndexedDataset, dtype: np.dtype[Any], widen: bool) -> None:
    """Check that the source's tokens may be written as `dtype`.

    Raises:
        DTypeError: the dtypes differ and `widen` is off, or the values would not fit.
    """
    if source.dtype == dtype:
        return
    if not widen:
        raise DTypeError(
            f"{source.path_prefix} holds {source.dtype.name}, the file being written "
            f"{dtype.name}; pass widen=True to convert where no value can be lost"
        )
    same_kind = (source.dtype.kind == "f") == (dtype.kind == "f")
    if not same_kind or not np.can_cast(source.dtype, dtype, "safe"):
        raise DTypeError(
            f"{source.path_prefix} holds {source.dtype.name}, which {dtype.name} cannot always "
            "hold; write a wider dtype, for example int64"
        )
