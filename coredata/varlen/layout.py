"""Rows of a plan as arrays of fixed shape, for compilers that want to know shapes beforehand."""

import numpy as np

from coredata._typing import Int32, Int64
from coredata.varlen.plan import PackPlan


def places(plan: PackPlan) -> Int64[np.ndarray, " segments"]:
    """Where each segment starts in a flat (rows × limit) array: a target for reading tokens."""
    rows = np.repeat(np.arange(len(plan)), plan.row_segments())
    return rows * plan.limit + plan.starts()


def segment_ids(plan: PackPlan) -> Int32[np.ndarray, "rows limit"]:
    """1, 2, 3, … for the tokens of a row's first, second, third segment; 0 where there is none."""
    within = np.arange(len(plan.segments)) - np.repeat(plan.row_splits[:-1], plan.row_segments())
    out = np.zeros(len(plan) * plan.limit, np.int32)
    out[_token_places(plan)] = np.repeat(within + 1, plan.segments.lengths)
    return out.reshape(len(plan), plan.limit)


def position_ids(plan: PackPlan) -> Int32[np.ndarray, "rows limit"]:
    """0, 1, 2, … within each segment, 0 where there is none."""
    out = np.zeros(len(plan) * plan.limit, np.int32)
    out[_token_places(plan)] = _within(plan)
    return out.reshape(len(plan), plan.limit)


def cu_seqlens(plan: PackPlan, max_segments: int) -> Int32[np.ndarray, "rows bounds"]:
    """Boundaries of the segments of each row, from 0, the last one repeated to the end.

    Returns:
        (rows, max_segments + 1). What is left of a row past its last boundary is no segment.

    Raises:
        ValueError: a row has more segments.
    """
    counts = plan.row_segments()
    if counts.size and counts.max() > max_segments:
        row = int(np.argmax(counts))
        raise ValueError(
            f"Row {row} has {counts[row]} segments, more than max_segments={max_segments}. "
            f"Give max_segments={counts[row]} or more, or pack with a limit on segments."
        )
    ends = np.concatenate([[0], np.cumsum(plan.segments.lengths)])
    last = plan.row_splits[1:, None]
    at = np.minimum(plan.row_splits[:-1, None] + np.arange(max_segments + 1), last)
    return (ends[at] - ends[plan.row_splits[:-1, None]]).astype(np.int32)


def _within(plan: PackPlan) -> Int64[np.ndarray, " tokens"]:
    lengths = plan.segments.lengths
    return np.arange(plan.tokens) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _token_places(plan: PackPlan) -> Int64[np.ndarray, " tokens"]:
    return np.repeat(places(plan), plan.segments.lengths) + _within(plan)
