"""Which requests fetch a set of byte ranges: a plan, without any I/O.

Many short ranges of one file are wanted. A request costs time whatever its size, and a byte costs
bandwidth, so ranges that lie close together are fetched as one. The smallest gaps are closed
first, until the bytes between ranges reach a set share of the bytes wanted: the most requests
saved for that waste. Costs one sort of the ranges and one of the gaps.
"""

from dataclasses import dataclass

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Bool, Int64


@dataclass(frozen=True)
class RangePlan:
    """Limits that requests keep.

    Attributes:
        gap: largest gap, in bytes, that is fetched along.
        waste: bytes in gaps, at most, as a share of the bytes wanted (counted in whole units).
        largest: bytes of a request at most; at least `unit`.
        unit: requests begin and end at multiples of it, or at the end of the file.
    """

    gap: int
    waste: float
    largest: int
    unit: int = 1

    def requests(
        self,
        offsets: Int64[np.ndarray, " ranges"],
        lengths: Int64[np.ndarray, " ranges"],
        size: int,
    ) -> tuple[Int64[np.ndarray, " requests"], Int64[np.ndarray, " requests"]]:
        """Begin and end of each request for ranges of a file of `size` bytes.

        The ranges may overlap and come in any order; they lie in the file. Requests are sorted
        and do not overlap; together they hold every byte wanted.
        """
        wanted = lengths > 0
        starts = offsets[wanted] // self.unit * self.unit
        stops = np.minimum(-(-(offsets[wanted] + lengths[wanted]) // self.unit) * self.unit, size)
        order = np.argsort(starts, kind="stable")
        starts, stops = _union(starts[order], stops[order])
        if starts.size == 0:
            return starts, stops
        joined = self._joined(starts, stops)
        largest = max(self.largest // self.unit, 1) * self.unit
        room = int(np.sum(-(-(stops - starts) // largest)))
        out = np.empty((2, room), np.int64)
        count = cut_requests(starts, stops, joined, largest, out)
        return out[0, :count].copy(), out[1, :count].copy()

    def _joined(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Whether each range is to be fetched along with the one before it."""
        gaps = starts[1:] - stops[:-1]
        by_size = np.argsort(gaps, kind="stable")
        allowed = np.cumsum(gaps[by_size]) <= self.waste * int(np.sum(stops - starts))
        joined = np.zeros(starts.size, np.bool_)
        joined[1:][by_size] = allowed & (gaps[by_size] <= self.gap)
        return joined


def _union(starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted ranges as disjoint ones; ranges that touch become one."""
    if starts.size == 0:
        return starts, stops
    reach = np.maximum.accumulate(stops)
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return starts[first], reach[last]


@kernel
def cut_requests(
    starts: Int64[np.ndarray, " ranges"],
    stops: Int64[np.ndarray, " ranges"],
    joined: Bool[np.ndarray, " ranges"],
    largest: int,
    out: Int64[np.ndarray, "2 room"],
) -> int:
    """Write begin and end of each request to `out`; returns how many there are.

    A range joins the request before it where `joined` says so and the result is not too large. A
    range that is itself too large is cut.
    """
    count = np.int64(0)
    for i in range(starts.size):
        start, stop = starts[i], stops[i]
        if count > 0 and joined[i] and stop - out[0, count - 1] <= largest:
            out[1, count - 1] = stop
            continue
        while start < stop:
            end = min(start + largest, stop)
            out[0, count] = start
            out[1, count] = end
            count += 1
            start = end
    return int(count)
