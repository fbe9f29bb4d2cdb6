"""Ranges in portions that fit into memory, what they cost there, and hints that wait."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from coredata._typing import Int64
from coredata.storage.ranges import RangePlan
from coredata.storage.segments import OVERHEAD

Of = TypeVar("Of")


@dataclass(frozen=True, eq=False)
class Hint(Generic[Of]):
    """Ranges that will be read soon, and the memory that they take at most."""

    of: Of
    offsets: Int64[np.ndarray, " ranges"]
    lengths: Int64[np.ndarray, " ranges"]
    cost: int

    def names(self, offsets: Int64[np.ndarray, " others"]) -> bool:
        """Whether one of the ranges begins where one of these does."""
        return bool(np.isin(self.offsets, offsets).any())


def cost_of(lengths: Int64[np.ndarray, " ranges"], plan: RangePlan) -> Int64[np.ndarray, " ranges"]:
    """Bytes of memory that each range takes at most, once it is fetched."""
    edges = 0 if plan.unit == 1 else 2 * plan.unit
    whole = lengths + (lengths * plan.waste).astype(np.int64) + edges
    return whole + OVERHEAD * (1 + whole // plan.largest)


def parts_of(
    offsets: Int64[np.ndarray, " ranges"],
    lengths: Int64[np.ndarray, " ranges"],
    out_offsets: Int64[np.ndarray, " ranges"],
    plan: RangePlan,
    limit: int,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The ranges in portions that take at most `limit` bytes of memory each, or are one range.

    Ranges longer than a request are cut.
    """
    if int(cost_of(lengths, plan).sum()) <= limit:
        yield offsets, lengths, out_offsets
        return
    pieces = np.maximum(-(-lengths // plan.largest), 1)
    which = np.repeat(np.arange(lengths.size), pieces)
    within = (np.arange(which.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * plan.largest
    offsets, out_offsets = offsets[which] + within, out_offsets[which] + within
    lengths = np.minimum(lengths[which] - within, plan.largest)
    reach = np.cumsum(cost_of(lengths, plan))
    first = before = 0
    while first < lengths.size:
        stop = max(int(np.searchsorted(reach, before + limit, "right")), first + 1)
        yield offsets[first:stop], lengths[first:stop], out_offsets[first:stop]
        first, before = stop, int(reach[stop - 1])
