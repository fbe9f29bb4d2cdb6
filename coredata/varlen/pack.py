"""From lengths to a pack plan."""

from dataclasses import replace

import numpy as np

from coredata._typing import Int64, Integer
from coredata.varlen.counting import by_row, long_to_short
from coredata.varlen.packers import best_fit, first_fit, next_fit
from coredata.varlen.plan import PackPlan
from coredata.varlen.segments import Segments, fit_to_limit, whole_samples

_PLACE = {
    "best_fit_decreasing": best_fit,
    "first_fit_decreasing": first_fit,
    "best_fit": best_fit,
    "first_fit": first_fit,
    "next_fit": next_fit,
}

PACKERS = tuple(_PLACE)
"""How segments can find their rows. The decreasing ones place long segments first and fill rows
best; the others place them in order; next_fit never goes back to an earlier row."""

_NO_LIMIT = 2**62
_LARGEST_TABLE = 2**25
_SMALL_TABLE = 2**16


def pack(
    lengths: Integer[np.ndarray, " samples"],
    limit: int,
    *,
    packer: str = "best_fit_decreasing",
    max_segments: int | None = None,
    overflow: str = "error",
    samples: Int64[np.ndarray, " samples"] | None = None,
) -> PackPlan:
    """Pack samples of the given lengths into rows of at most `limit` tokens.

    A sample that fits a row is never cut. The plan depends on the arguments alone, and takes
    O(n log n) time.

    Args:
        lengths: tokens of each sample; padded lengths if samples are padded to an alignment.
            Samples without tokens are left out.
        limit: tokens of a row.
        packer: see `PACKERS`.
        max_segments: the most segments of a row; None for any number.
        overflow: what to do with samples longer than `limit`; see `OVERFLOWS`.
        samples: the samples' numbers, for the plan; 0, 1, 2, … by default.

    Raises:
        ValueError: a sample over the limit (with overflow="error"), a negative length, or an
            argument out of range.
    """
    fitted = fit_to_limit(whole_samples(lengths, samples), limit, overflow)
    plan, _ = pack_segments(fitted.segments, limit, packer=packer, max_segments=max_segments)
    if not fitted.lost_tokens and not fitted.lost_samples:
        return plan
    return replace(plan, lost_tokens=fitted.lost_tokens, lost_samples=fitted.lost_samples)


def pack_segments(
    segments: Segments,
    limit: int,
    *,
    packer: str = "best_fit_decreasing",
    max_segments: int | None = None,
    rows: int | None = None,
) -> tuple[PackPlan, Segments]:
    """Pack segments into rows; with `rows`, into exactly that many.

    Rows come in the order of their first segment, and the segments of a row in the order they
    were given, so that a packer that works from long to short does not sort the training data.

    Args:
        segments: none is longer than `limit`.
        limit: tokens of a row.
        packer: see `PACKERS`.
        max_segments: the most segments of a row; None for any number.
        rows: fixed number of rows; some may stay empty. None for as many as are needed.

    Returns:
        The plan, and the segments that found no room in `rows` rows, in their order: offer them
        again, before new ones.

    Raises:
        ValueError: a segment of no tokens or over the limit, or an argument out of range.
    """
    if packer not in PACKERS:
        raise ValueError(f"packer must be one of {', '.join(PACKERS)}, found {packer!r}.")
    for name, value in (("max_segments", max_segments), ("rows", rows)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, or None for no bound; found {value}.")
    if (segments.lengths < 1).any():
        raise ValueError("A segment without tokens cannot be packed: leave it out.")
    lengths = fit_to_limit(segments, limit).segments.lengths
    # A row can hold no more than there is: tables over all lengths need not be longer.
    most = min(limit, int(lengths.sum()))
    if _PLACE[packer] is best_fit and most > _LARGEST_TABLE:
        raise ValueError(
            f"packer={packer!r} keeps a table of {most} entries for rows that long; it goes up to "
            f"{_LARGEST_TABLE}. Use packer='first_fit_decreasing', which has none."
        )
    narrow = np.dtype(np.int32 if lengths.size < 2**31 else np.int64)
    if not packer.endswith("decreasing"):
        order = np.arange(lengths.size, dtype=narrow)
    elif most <= max(lengths.size, _SMALL_TABLE):
        order = np.empty(lengths.size, narrow)
        long_to_short(lengths, np.int64(most), order)
    else:
        order = np.argsort(-lengths, kind="stable").astype(narrow)
    row_of = np.empty(lengths.size, narrow)
    used = _PLACE[packer](
        lengths,
        order,
        np.int64(most),
        np.int64(max_segments or _NO_LIMIT),
        np.int64(rows or _NO_LIMIT),
        row_of,
    )
    return _plan(segments, row_of, used, limit, rows), segments.take(np.flatnonzero(row_of < 0))


def _plan(
    segments: Segments,
    row_of: Integer[np.ndarray, " segments"],
    used: int,
    limit: int,
    rows: int | None,
) -> PackPlan:
    """Group segments by row; rows in the order of their first segment, empty ones last."""
    splits = np.zeros((rows or used) + 1, np.int64)
    chosen = np.empty(len(segments), np.int64)
    by_row(row_of, np.int64(used), splits, chosen)
    return PackPlan(segments.take(chosen[: splits[-1]]), splits, limit)
