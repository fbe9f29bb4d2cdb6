"""A pack plan: which segments share a row. A value, to be compared, kept and shared out."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from coredata._typing import Int64
from coredata.varlen.segments import Segments, read_only


@dataclass(frozen=True, eq=False)
class PackPlan:
    """Rows of segments, for all ranks together; equal plans have equal hashes.

    Nothing is read or packed yet: a plan is made from lengths alone, is the same on every rank,
    and each rank takes its `share` of it. Continuing in the middle is `rows(start, len(plan))`.

    Attributes:
        segments: all segments, row by row.
        row_splits: those of row r are `row_splits[r]` up to `row_splits[r + 1]`. A row may be
            empty.
        limit: the most tokens a row holds.
        lost_tokens: tokens that were cut off or dropped to fit the limit.
        lost_samples: samples that were dropped altogether.

    Raises:
        ValueError: arrays that contradict each other, or a row over its limit.
    """

    segments: Segments
    row_splits: Int64[np.ndarray, " splits"]
    limit: int
    lost_tokens: int = 0
    lost_samples: int = 0

    def __post_init__(self) -> None:
        splits = self.row_splits
        if not splits.size or splits[0] != 0 or (np.diff(splits) < 0).any():
            raise ValueError(f"row_splits must start at 0 and never fall, found {splits}.")
        if splits[-1] != len(self.segments):
            raise ValueError(
                f"row_splits end at {splits[-1]}, but there are {len(self.segments)} segments."
            )
        object.__setattr__(self, "row_splits", read_only(splits))
        if len(self) and (full := self.row_tokens()).max() > self.limit:
            row = int(np.argmax(full > self.limit))
            raise ValueError(f"Row {row} has {full[row]} tokens, more than its limit {self.limit}.")

    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.segments.samples, self.segments.offsets, self.segments.lengths

    def __len__(self) -> int:
        """Number of rows."""
        return self.row_splits.size - 1

    def __getitem__(self, row: int) -> Segments:
        """The segments of one row.

        Raises:
            IndexError: a row that does not exist.
        """
        if not 0 <= row < len(self):
            raise IndexError(f"Row {row} of a plan of {len(self)} rows; they are numbered from 0.")
        return self.segments.take(np.arange(self.row_splits[row], self.row_splits[row + 1]))

    @cached_property
    def digest(self) -> str:
        """A SHA-256 digest of everything in the plan: what two ranks compare."""
        state = hashlib.sha256(f"{self.limit} {self.lost_tokens} {self.lost_samples}".encode())
        for array in (*self._arrays(), self.row_splits):
            state.update(array.size.to_bytes(8, "little"))
            state.update(np.ascontiguousarray(array, "<i8").tobytes())
        return state.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackPlan) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return (
            f"PackPlan({len(self)} rows of {self.limit}, {len(self.segments)} segments, "
            f"{self.tokens} tokens, {self.efficiency:.1%} full, {self.lost_tokens} tokens and "
            f"{self.lost_samples} samples lost, digest {self.digest[:12]})"
        )

    @property
    def tokens(self) -> int:
        """Tokens of all rows."""
        return int(self.segments.lengths.sum())

    @property
    def efficiency(self) -> float:
        """Share of all places that hold a token; 1 for a plan without rows."""
        return self.tokens / (len(self) * self.limit) if len(self) else 1.0

    def row_tokens(self) -> Int64[np.ndarray, " rows"]:
        """Tokens of each row."""
        return sums_by_row(self.segments.lengths, self.row_splits)

    def row_segments(self) -> Int64[np.ndarray, " rows"]:
        """Segments of each row."""
        return np.diff(self.row_splits)

    def starts(self) -> Int64[np.ndarray, " segments"]:
        """Where in its row each segment starts, packed from the left."""
        ends = np.cumsum(self.segments.lengths)
        begins = ends - self.segments.lengths
        before = np.concatenate([[0], ends])[self.row_splits[:-1]]
        return begins - np.repeat(before, self.row_segments())

    def take(self, rows: Int64[np.ndarray, " rows"]) -> "PackPlan":
        """The rows numbered `rows`, in that order; what was lost is not counted again.

        Raises:
            IndexError: a row that does not exist.
        """
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self):
            wrong = rows[(rows < 0) | (rows >= len(self))][0]
            raise IndexError(
                f"Row {wrong} of a plan of {len(self)} rows; they are numbered from 0."
            )
        counts = self.row_segments()[rows]
        splits = np.concatenate([[0], np.cumsum(counts)])
        chosen = np.arange(splits[-1]) + np.repeat(self.row_splits[rows] - splits[:-1], counts)
        return PackPlan(self.segments.take(chosen), splits, self.limit)

    def rows(self, start: int, stop: int) -> "PackPlan":
        """Rows `start` up to, without, `stop`."""
        return self.take(np.arange(start, stop))

    def share(self, rank: int, size: int) -> "PackPlan":
        """The rows of data-parallel rank `rank` of `size`: every size-th, from `rank` on.

        Raises:
            ValueError: no such rank, or rows that do not divide evenly.
        """
        if not 0 <= rank < size:
            raise ValueError(f"There is no rank {rank} of {size}; ranks are 0 to {size - 1}.")
        if len(self) % size:
            raise ValueError(
                f"{len(self)} rows do not divide among {size} ranks. "
                f"Make them {-(-len(self) // size) * size} with plan.padded_to({size})."
            )
        return self.take(np.arange(rank, len(self), size))

    def padded_to(self, multiple: int) -> "PackPlan":
        """This plan with empty rows at its end, so that their number is a multiple."""
        more = np.full(-len(self) % multiple, self.row_splits[-1])
        return replace(self, row_splits=np.concatenate([self.row_splits, more]))


def concatenate(plans: Sequence[PackPlan]) -> PackPlan:
    """The rows of several plans in one; they have one limit.

    Raises:
        ValueError: no plan, or different limits.
    """
    limits = sorted({plan.limit for plan in plans})
    if len(limits) != 1:
        raise ValueError(f"Plans are joined that have one limit, found limits {limits}.")
    counts = np.concatenate([plan.row_segments() for plan in plans])
    arrays = (np.concatenate(a) for a in zip(*(p._arrays() for p in plans), strict=True))
    return PackPlan(
        Segments(*arrays),
        np.concatenate([[0], np.cumsum(counts)]),
        limits[0],
        sum(plan.lost_tokens for plan in plans),
        sum(plan.lost_samples for plan in plans),
    )


def sums_by_row(
    values: Int64[np.ndarray, " segments"], row_splits: Int64[np.ndarray, " splits"]
) -> Int64[np.ndarray, " rows"]:
    """The sum of the `values` of each row; 0 for an empty one."""
    ends = np.concatenate([[0], np.cumsum(values)])
    return np.diff(ends[row_splits])
