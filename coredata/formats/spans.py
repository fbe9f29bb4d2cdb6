"""The bulk read: many spans of tokens into one output array."""

import numpy as np

from coredata._typing import Int32, Int64, Shaped
from coredata.formats.convert import converted
from coredata.formats.errors import SequencePointerError
from coredata.formats.gather import (
    NO_SUCH_SEQUENCE,
    SPAN_LEAVES_OUTPUT,
    SPAN_LEAVES_SEQUENCE,
    SPANS_FIT,
    SPANS_UNALIGNED,
    gather,
    plan_spans,
)
from coredata.formats.index import Index
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.storage import ByteReader

MappedTokens = tuple[
    Shaped[np.ndarray, " tokens"],
    Int32[np.ndarray, " sequences"],
    Int64[np.ndarray, " sequences"],
]
"""Tokens of a whole `.bin` file, lengths of sequences, bytes at which they begin."""


def read_spans(
    path_prefix: str,
    index: Index,
    reader: ByteReader,
    sequences: Int64[np.ndarray, " spans"],
    offsets: Int64[np.ndarray, " spans"],
    lengths: Int64[np.ndarray, " spans"],
    out: Shaped[np.ndarray, " tokens"],
    out_offsets: Int64[np.ndarray, " spans"],
) -> None:
    """Check all spans, then copy them; see `IndexedDataset.read_into`."""
    if sequences.size == 0:
        return
    if not out.flags.writeable and index.sequence_lengths.size:
        raise ValueError("the output array is read-only; pass one that can be written")
    starts, aligned = _plan(
        path_prefix, index, reader, sequences, offsets, lengths, out.size, out_offsets
    )
    if np.can_cast(index.dtype, out.dtype, "safe"):
        _copy(index, reader, starts, aligned, lengths, out, out_offsets)
        return
    positions = np.cumsum(lengths) - lengths
    stored = np.empty(lengths.sum(), index.dtype)
    _copy(index, reader, starts, aligned, lengths, stored, positions)
    values = converted(stored, out.dtype, f"{path_prefix}: tokens read into an output array")
    gather(values, positions * out.itemsize, out.itemsize, lengths, out, out_offsets)


def locate_spans(
    path_prefix: str,
    index: Index,
    reader: ByteReader,
    sequences: Int64[np.ndarray, " spans"],
    offsets: Int64[np.ndarray, " spans"],
    lengths: Int64[np.ndarray, " spans"],
    out_size: int,
    out_offsets: Int64[np.ndarray, " spans"],
    dtype: np.dtype,
) -> tuple[Shaped[np.ndarray, " tokens"], Int64[np.ndarray, " spans"]] | None:
    """Check all spans, then say where they lie; see `IndexedDataset.locate`."""
    view = reader.view()
    if view is None or not fits(index.dtype, dtype) or sequences.size == 0:
        return None
    starts, aligned = _plan(
        path_prefix, index, reader, sequences, offsets, lengths, out_size, out_offsets
    )
    if not aligned:
        return None
    starts //= index.dtype.itemsize
    return all_tokens(view, index.dtype), starts


def fits(stored: np.dtype, wanted: np.dtype) -> bool:
    """Whether tokens are integers that the wanted dtype can all hold."""
    return stored.kind in "iu" and np.can_cast(stored, wanted, "safe")


def all_tokens(
    view: Shaped[np.ndarray, " bytes"], dtype: np.dtype
) -> Shaped[np.ndarray, " tokens"]:
    """The bytes of a whole `.bin` file as tokens."""
    return view[: view.size // dtype.itemsize * dtype.itemsize].view(dtype)


def hint_spans(
    index: Index,
    reader: ByteReader,
    sequences: Int64[np.ndarray, " spans"],
    offsets: Int64[np.ndarray, " spans"],
    lengths: Int64[np.ndarray, " spans"],
) -> None:
    """Tell the reader that spans will be read soon; see `IndexedDataset.prefetch`."""
    known = (sequences >= 0) & (sequences < index.sequence_lengths.size)
    starts = index.sequence_pointers[sequences[known]] + offsets[known] * index.dtype.itemsize
    reader.prefetch(starts, lengths[known] * index.dtype.itemsize)


def _plan(
    path_prefix: str,
    index: Index,
    reader: ByteReader,
    sequences: np.ndarray,
    offsets: np.ndarray,
    lengths: np.ndarray,
    out_size: int,
    out_offsets: np.ndarray,
) -> tuple[np.ndarray, bool]:
    """Where each span begins, in bytes, and whether all begin at multiples of the item size."""
    if index.sequence_lengths.size == 0:
        raise IndexError(f"{path_prefix} has no sequences, but {sequences[0]} was asked for")
    starts = np.empty(sequences.size, np.int64)
    status, span = plan_spans(
        index.sequence_lengths,
        index.sequence_pointers,
        index.dtype.itemsize,
        reader.size,
        sequences,
        offsets,
        lengths,
        out_size,
        out_offsets,
        starts,
    )
    if status not in (SPANS_FIT, SPANS_UNALIGNED):
        asked = (int(sequences[span]), int(offsets[span]), int(lengths[span]))
        place = (int(out_offsets[span]), out_size)
        raise _bad_span(path_prefix, index, reader, status, span, asked, place)
    return starts, status == SPANS_FIT


def _copy(
    index: Index,
    reader: ByteReader,
    starts: np.ndarray,
    aligned: bool,
    lengths: np.ndarray,
    out: np.ndarray,
    out_offsets: np.ndarray,
) -> None:
    """Copy checked spans to an output that can hold their dtype."""
    itemsize = index.dtype.itemsize
    view = reader.view()
    if view is not None and aligned:
        gather(all_tokens(view, index.dtype), starts, itemsize, lengths, out, out_offsets)
    elif out.dtype == index.dtype and out.flags.c_contiguous:
        target = out.view(np.uint8)
        reader.read_ranges(starts, lengths * itemsize, target, out_offsets * itemsize)
    else:
        positions = (np.cumsum(lengths) - lengths) * itemsize
        raw = np.empty(lengths.sum() * itemsize, np.uint8)
        reader.read_ranges(starts, lengths * itemsize, raw, positions)
        raw.flags.writeable = False
        gather(raw.view(index.dtype), positions, itemsize, lengths, out, out_offsets)


def _bad_span(
    path_prefix: str,
    index: Index,
    reader: ByteReader,
    status: int,
    span: int,
    asked: tuple[int, int, int],
    place: tuple[int, int],
) -> Exception:
    sequence, offset, length = asked
    count = index.sequence_lengths.size
    if status == NO_SUCH_SEQUENCE:
        return IndexError(
            f"{path_prefix}: span {span} asks for sequence {sequence}; there are {count} "
            f"sequences, 0 to {count - 1}"
        )
    if status == SPAN_LEAVES_SEQUENCE:
        return ValueError(
            f"{path_prefix}: span {span} asks for {length} tokens from token {offset} of sequence "
            f"{sequence}, which has {index.sequence_lengths[sequence]} tokens"
        )
    if status == SPAN_LEAVES_OUTPUT:
        return ValueError(
            f"{path_prefix}: span {span} puts {length} tokens at {place[0]} of an output "
            f"array of {place[1]}; it does not fit"
        )
    return outside_file(path_prefix, sequence, index, reader.size)


def outside_file(path_prefix: str, number: int, index: Index, size: int) -> SequencePointerError:
    """The error for a sequence whose bytes are not all inside the `.bin` file."""
    return SequencePointerError(
        f"{get_idx_path(path_prefix)}: sequence {number} of {index.sequence_lengths[number]} "
        f"{index.dtype.name} tokens is said to begin at byte {index.sequence_pointers[number]}, "
        f"which does not fit in {get_bin_path(path_prefix)} of {size} bytes; one of the two is "
        "damaged, or they belong to different datasets"
    )
