"""Ranges of samples that are to be packed, and what happens to those that are too long."""

from dataclasses import dataclass

import numpy as np

from coredata._typing import Int64, Integer

OVERFLOWS = ("error", "split", "truncate", "drop")
"""What can happen to a sample longer than a row: it is refused, cut into several segments, cut
short, or left out."""

MAX_LIMIT = 2**31 - 1
"""The longest row: boundaries of its segments are 32-bit integers."""


@dataclass(frozen=True)
class Segments:
    """Segment i is `lengths[i]` tokens from token `offsets[i]` of sample `samples[i]` on."""

    samples: Int64[np.ndarray, " segments"]
    offsets: Int64[np.ndarray, " segments"]
    lengths: Int64[np.ndarray, " segments"]

    def __post_init__(self) -> None:
        for name in ("samples", "offsets", "lengths"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        """Number of segments."""
        return self.samples.size

    def take(self, chosen: Int64[np.ndarray, " chosen"]) -> "Segments":
        """The segments numbered `chosen`, in that order."""
        return Segments(self.samples[chosen], self.offsets[chosen], self.lengths[chosen])


@dataclass(frozen=True)
class FittedSegments:
    """Segments none of which is longer than a row, and what was lost to get there."""

    segments: Segments
    lost_tokens: int
    lost_samples: int


def read_only(array: np.ndarray) -> np.ndarray:
    """The same memory, not to be written to through this view."""
    view = array.view()
    view.flags.writeable = False
    return view


def whole_samples(
    lengths: Integer[np.ndarray, " samples"], samples: Int64[np.ndarray, " samples"] | None = None
) -> Segments:
    """One segment for every sample; samples without tokens have none.

    Args:
        lengths: tokens of each sample.
        samples: the numbers of the samples; 0, 1, 2, … by default.

    Raises:
        ValueError: a negative length.
    """
    lengths = lengths.astype(np.int64)
    if samples is None:
        samples = np.arange(lengths.size)
    if (lengths < 0).any():
        wrong = int(np.argmax(lengths < 0))
        raise ValueError(
            f"Sample {samples[wrong]} has {lengths[wrong]} tokens; a length is 0 or more. "
            "Leave the sample out or mend its length."
        )
    some = np.flatnonzero(lengths)
    return Segments(samples[some], np.zeros(some.size, np.int64), lengths[some])


def fit_to_limit(segments: Segments, limit: int, overflow: str = "error") -> FittedSegments:
    """Make every segment fit a row of `limit` tokens.

    Raises:
        ValueError: a segment is too long and `overflow` is "error"; an unknown policy; a limit that
            is none.
    """
    if overflow not in OVERFLOWS:
        raise ValueError(f"overflow must be one of {', '.join(OVERFLOWS)}, found {overflow!r}.")
    if not 1 <= limit <= MAX_LIMIT:
        raise ValueError(
            f"limit is the number of tokens in a row, 1 to {MAX_LIMIT} (boundaries are 32-bit), "
            f"found {limit}. Give e.g. limit=4096."
        )
    long = segments.lengths > limit
    if not long.any():
        return FittedSegments(segments, 0, 0)
    if overflow == "error":
        raise ValueError(_too_long(segments, limit))
    if overflow == "split":
        return FittedSegments(_split(segments, limit), 0, 0)
    if overflow == "drop":
        lost = int(segments.lengths[long].sum())
        return FittedSegments(segments.take(np.flatnonzero(~long)), lost, int(long.sum()))
    lost = int((segments.lengths[long] - limit).sum())
    short = np.minimum(segments.lengths, limit)
    return FittedSegments(Segments(segments.samples, segments.offsets, short), lost, 0)


def _split(segments: Segments, limit: int) -> Segments:
    """Full rows from the start of a segment, then what is left."""
    pieces = -(-segments.lengths // limit)
    of = np.repeat(np.arange(len(segments)), pieces)
    within = (np.arange(of.size) - (np.cumsum(pieces) - pieces)[of]) * limit
    return Segments(
        segments.samples[of],
        segments.offsets[of] + within,
        np.minimum(segments.lengths[of] - within, limit),
    )


def _too_long(segments: Segments, limit: int) -> str:
    long = segments.lengths > limit
    first = int(np.argmax(long))
    return (
        f"Sample {segments.samples[first]} has {segments.lengths[first]} tokens, more than the "
        f"{limit} of a row; {int(long.sum())} of {len(segments)} samples do. Use a limit of "
        f"{int(segments.lengths.max())} or more, or overflow='split', 'truncate' or 'drop'."
    )
