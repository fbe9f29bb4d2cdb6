"""Which stretches of objects are in memory, or on their way, and which may go first.

Bookkeeping only: no I/O and no locks. Whoever uses it holds a lock around every call.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, final

OVERHEAD = 512
"""Bytes that a segment takes beside its data: objects, dictionary entries."""


@final
class Segment:
    """Bytes `start … stop` of an object: fetched, or being fetched.

    Attributes:
        of: which object; anything that can be a key.
        data: the bytes; None while they are on their way.
        job: the fetch, while it is under way.
        ahead: whether it was fetched ahead and has not been read yet.
        readers: how many reads need it right now.
    """

    __slots__ = ("ahead", "data", "job", "of", "readers", "start", "stop")

    def __init__(self, of: Any, start: int, stop: int, ahead: bool) -> None:
        self.of = of
        self.start = start
        self.stop = stop
        self.ahead = ahead
        self.data: bytes | None = None
        self.job: Future[None] | None = None
        self.readers = 0

    @property
    def cost(self) -> int:
        """Bytes of memory that it takes."""
        return cost_of_segment(self.start, self.stop)


def cost_of_segment(start: int, stop: int) -> int:
    """Bytes of memory that a segment takes."""
    return stop - start + OVERHEAD


@dataclass
class _Object:
    """The segments of one object, sorted; they do not overlap."""

    starts: list[int] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)


class SegmentTable:
    """Segments of all objects, within a number of bytes.

    What was read is let go first, the least recently used before the others; then what was
    fetched ahead, the oldest first. What is on its way or being read stays.

    Args:
        limit: bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self.ahead = 0
        self.evicted = 0
        self._objects: dict[Any, _Object] = {}
        self._used: OrderedDict[Segment, None] = OrderedDict()
        self._promised: OrderedDict[Segment, None] = OrderedDict()

    def over(self, of: Any, start: int, stop: int) -> list[Segment]:
        """The segments that overlap `start … stop`, in order."""
        known = self._objects.get(of)
        if known is None:
            return []
        first = bisect_right(known.starts, start) - 1
        if first < 0 or known.segments[first].stop <= start:
            first += 1
        return known.segments[first : bisect_left(known.starts, stop, lo=first)]

    def holes(self, of: Any, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The parts of `start … stop` that no segment has."""
        for segment in self.over(of, start, stop):
            if segment.start > start:
                yield start, segment.start
            start = segment.stop
        if start < stop:
            yield start, stop

    def add(self, of: Any, start: int, stop: int, ahead: bool) -> Segment:
        """A new segment, on its way; it fills (a part of) a hole."""
        segment = Segment(of, start, stop, ahead)
        known = self._objects.setdefault(of, _Object())
        place = bisect_left(known.starts, start)
        known.starts.insert(place, start)
        known.segments.insert(place, segment)
        self.held += segment.cost
        self.ahead += segment.cost if ahead else 0
        return segment

    def remove(self, segment: Segment) -> None:
        """Forget a segment."""
        known = self._objects[segment.of]
        place = bisect_left(known.starts, segment.start)
        del known.starts[place], known.segments[place]
        if not known.starts:
            del self._objects[segment.of]
        self.held -= segment.cost
        self.ahead -= segment.cost if segment.ahead else 0
        self._used.pop(segment, None)
        self._promised.pop(segment, None)

    def arrived(self, segment: Segment, data: bytes) -> None:
        """The bytes are there."""
        segment.data = data
        segment.job = None
        self._settle(segment)

    def take(self, segment: Segment) -> None:
        """A read needs it: it stays until `give_back`."""
        segment.readers += 1
        self._used.pop(segment, None)
        self._promised.pop(segment, None)
        if segment.ahead:
            segment.ahead = False
            self.ahead -= segment.cost

    def give_back(self, segment: Segment) -> None:
        """A read has done with it."""
        segment.readers -= 1
        self._settle(segment)

    def make_room(self, cost: int, ahead: bool) -> bool:
        """Let segments go until `cost` more bytes fit; whether they do now.

        For what is fetched ahead, nothing else that is fetched ahead is given up.
        """
        for queue in (self._used,) if ahead else (self._used, self._promised):
            while queue and self.held + cost > self.limit:
                self.remove(next(iter(queue)))
                self.evicted += 1
        return self.held + cost <= self.limit

    def give_up(self, cost: int) -> None:
        """Let go what was fetched ahead and lies there longest, about `cost` bytes of it."""
        before = self.held
        while self._promised and before - self.held < cost:
            self.remove(next(iter(self._promised)))
            self.evicted += 1

    def _settle(self, segment: Segment) -> None:
        """Note that it may go, unless a read needs it or it is still on its way."""
        if segment.data is None or segment.readers:
            return
        queue: OrderedDict[Segment, Any] = self._promised if segment.ahead else self._used
        queue[segment] = None
