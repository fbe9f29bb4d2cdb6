"""What all readers of objects in a process share: memory, threads, connections, counters."""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, final

import numpy as np

from coredata._typing import Int64, UInt8
from coredata.storage.block_store import BlockStore
from coredata.storage.counters import Counters, Tally
from coredata.storage.faults import StorageError
from coredata.storage.object_requests import ObjectRequests, RemoteObject
from coredata.storage.options import ReadOptions, read_options
from coredata.storage.ranges import RangePlan
from coredata.storage.segments import Segment, SegmentTable, cost_of_segment
from coredata.storage.service_parts import Hint, cost_of, parts_of


@final
class ReadService:
    """Reads ranges of objects through one memory budget, and fetches ahead what it is told of.

    Reads come first: they have threads of their own, and what is fetched ahead takes at most three
    quarters of the memory; hints that find no room wait, in order, until something was read.
    Threads start with the first fetch. Any number of threads may read.

    Args:
        options: how to read.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        largest = min(options.largest_request, options.share // 4)
        self._plan = RangePlan(options.gap, options.waste, largest, options.unit)
        self._table = SegmentTable(options.share)
        self._ahead_limit = options.share * 3 // 4
        self._changed = threading.Condition()
        self._tally = Tally()
        self._requests = ObjectRequests(options, self._tally)
        self._waiting: deque[Hint[RemoteObject]] = deque()
        self._holding = self._coming = 0
        self._now = ThreadPoolExecutor(options.requests, thread_name_prefix="coredata-fetch")
        self._later = ThreadPoolExecutor(options.requests, thread_name_prefix="coredata-ahead")
        self._blocks = None if options.disk is None else BlockStore.of(options)

    @property
    def counters(self) -> Counters:
        """The counters as they are now."""
        with self._changed:
            return self._tally.counters(self._table.held, self._table.evicted)

    def open(self, url: str, storage_options: Mapping[str, Any] | None) -> RemoteObject:
        """The object at `url`, as it is now.

        Raises:
            FileNotFoundError: there is none.
            PermissionError: it may not be looked at.
            StorageError: its storage does not answer, or does not know its size.
        """
        return self._requests.open(url, storage_options)

    def looked_up(
        self, urls: Sequence[str], storage_options: Mapping[str, Any] | None
    ) -> contextlib.AbstractContextManager[None]:
        """Look objects up together; in the `with` block `open` takes what was found.

        Raises:
            StorageError: storage does not answer.
        """
        return self._requests.looked_up(urls, storage_options)

    def fetch(self, what: RemoteObject, start: int, stop: int) -> bytes:
        """Bytes `start … stop` of an object straight from storage, past what is kept.

        Raises:
            OSError: bytes could not be had; see `Retry.run`.
        """
        return self._requests.fetch(what, start, stop)

    def read_ranges(
        self,
        what: RemoteObject,
        offsets: Int64[np.ndarray, " ranges"],
        lengths: Int64[np.ndarray, " ranges"],
        out: UInt8[np.ndarray, " bytes"],
        out_offsets: Int64[np.ndarray, " ranges"],
    ) -> None:
        """Copy ranges, which lie in the object and fit into `out`.

        Raises:
            OSError: bytes could not be had; see `Retry.run`.
        """
        for part in parts_of(offsets, lengths, out_offsets, self._plan, self.options.share // 2):
            self._read(what, *part, out)

    def prefetch(
        self,
        what: RemoteObject,
        offsets: Int64[np.ndarray, " ranges"],
        lengths: Int64[np.ndarray, " ranges"],
    ) -> None:
        """Fetch ranges of the object in the background, as far and as soon as there is room.

        What fails is fetched again, and raises, when it is read.
        """
        if lengths.size == 0:
            return
        costs = np.cumsum(cost_of(lengths, self._plan))
        fit = int(np.searchsorted(costs, self._ahead_limit, "right"))
        if fit == 0:
            return
        with self._changed:
            self._waiting.append(Hint(what, offsets[:fit], lengths[:fit], int(costs[fit - 1])))
            self._start_waiting()

    def forget(self) -> None:
        """In a process that was forked from the one that uses it: let go all that was fetched."""
        self._table = SegmentTable(self.options.share)
        self._waiting = deque()

    def _read(
        self,
        what: RemoteObject,
        offsets: np.ndarray,
        lengths: np.ndarray,
        out_offsets: np.ndarray,
        out: np.ndarray,
    ) -> None:
        ranges = list(
            zip(
                offsets.tolist(),
                (offsets + lengths).tolist(),
                out_offsets.tolist(),
                strict=True,
            )
        )
        with self._changed:
            self._start_missing(what, offsets, lengths)
            needed = [self._table.over(what, start, stop) for start, stop, _ in ranges]
            jobs = [self._taken(segment) for segments in needed for segment in segments]
            self._tally.add(
                hits=sum(all(s.job is None for s in segments) for segments in needed),
                waits=sum(any(s.job is not None for s in segments) for segments in needed),
            )
            self._holding += 1
        try:
            for job in jobs:
                if job is not None:
                    job.result()
            for (start, stop, target), segments in zip(ranges, needed, strict=True):
                _copy(segments, start, stop, out[target : target + stop - start])
            self._tally.add(bytes_used=int(lengths.sum()))
        finally:
            with self._changed:
                for segments in needed:
                    for segment in segments:
                        self._table.give_back(segment)
                self._holding -= 1
                self._start_waiting()
                self._changed.notify_all()

    def _start_missing(self, what: RemoteObject, offsets: np.ndarray, lengths: np.ndarray) -> None:
        """Begin to fetch what is not in memory or on its way, when there is room for it."""
        while True:
            missing = self._missing(what, offsets, lengths)
            cost = sum(cost for _, _, cost in missing)
            if missing and self._asked_before_its_turn(what, offsets):
                self._table.give_up(cost)
            if self._table.held + cost <= self._table.limit:
                break
            if self._table.make_room(cost, ahead=False):
                continue  # it may have been made of what is wanted here: look again
            if self._holding + self._coming == 0:
                break
            self._changed.wait()
        for start, stop, _ in missing:
            self._start(self._table.add(what, start, stop, ahead=False), self._now)

    def _start_waiting(self) -> None:
        """Begin to fetch ahead for the hints that there is room for, in their order."""
        while self._waiting:
            hint = self._waiting[0]
            if self._table.ahead and hint.cost > self._ahead_limit - self._table.ahead:
                return
            missing = self._missing(hint.of, hint.offsets, hint.lengths)
            if not self._table.make_room(sum(cost for _, _, cost in missing), ahead=True):
                return
            self._waiting.popleft()
            for start, stop, _ in self._missing(hint.of, hint.offsets, hint.lengths):
                self._start(self._table.add(hint.of, start, stop, ahead=True), self._later)

    def _missing(
        self, what: RemoteObject, offsets: np.ndarray, lengths: np.ndarray
    ) -> list[tuple[int, int, int]]:
        """Requests for what is neither in memory nor on its way: begin, end, cost."""
        table = self._table
        open_ends = [
            (start, length)
            for start, length in zip(offsets.tolist(), lengths.tolist(), strict=True)
            if length and next(table.holes(what, start, start + length), None) is not None
        ]
        if not open_ends:
            return []
        wanted = np.array(open_ends, np.int64)
        starts, stops = self._plan.requests(wanted[:, 0], wanted[:, 1], what.facts.size)
        return [
            (start, stop, cost_of_segment(start, stop))
            for request in zip(starts.tolist(), stops.tolist(), strict=True)
            for start, stop in table.holes(what, *request)
        ]

    def _taken(self, segment: Segment) -> Future[None] | None:
        """Keep a segment for a read; what was to be fetched later is fetched now."""
        early = segment.ahead and segment.job is not None
        self._table.take(segment)
        if early and segment.job is not None and segment.job.cancel():
            self._coming -= 1
            self._start(segment, self._now)
        return segment.job

    def _asked_before_its_turn(self, what: RemoteObject, offsets: np.ndarray) -> bool:
        """Whether a waiting hint was about this; it and those before it are then out of date."""
        for number, hint in enumerate(self._waiting):
            if hint.of == what and hint.names(offsets):
                for _ in range(number + 1):
                    self._waiting.popleft()
                return True
        return False

    def _start(self, segment: Segment, pool: ThreadPoolExecutor) -> None:
        self._coming += 1
        segment.job = pool.submit(self._fetch, segment)

    def _fetch(self, segment: Segment) -> None:
        """Runs in a thread: get the bytes of a segment, or take it out again."""
        data: bytes | None = None
        try:
            if not threading.main_thread().is_alive():
                raise StorageError("the interpreter is ending")
            data = self._bytes(segment.of, segment.start, segment.stop)
        finally:
            with self._changed:
                self._coming -= 1
                if data is None:
                    self._table.remove(segment)
                else:
                    self._table.arrived(segment, data)
                self._start_waiting()
                self._changed.notify_all()

    def _bytes(self, what: RemoteObject, start: int, stop: int) -> bytes:
        if self._blocks is None:
            return self._requests.fetch(what, start, stop)
        about = (what.url, what.facts.size, what.facts.version)
        kept = self._blocks.read(about, start, stop)
        self._tally.add(bytes_from_disk=sum(len(data) for _, data in kept))
        parts, at = [], start
        for begin, data in [*kept, (stop, b"")]:
            if begin > at:
                fetched = self._requests.fetch(what, at, begin)
                self._blocks.write(about, at, fetched)
                parts.append(fetched)
            parts.append(data)
            at = begin + len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _copy(segments: list[Segment], start: int, stop: int, out: np.ndarray) -> None:
    for segment in segments:
        first, last = max(start, segment.start), min(stop, segment.stop)
        data = np.frombuffer(segment.data or b"", np.uint8)
        out[first - start : last - start] = data[first - segment.start : last - segment.start]


@contextlib.contextmanager
def looked_up(
    urls: Sequence[str], storage_options: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """Look objects up together; in the `with` block readers that open them ask no more.

    Raises:
        StorageError: storage does not answer.
    """
    with read_service(read_options(storage_options)).looked_up(urls, storage_options):
        yield


def read_service(options: ReadOptions) -> ReadService:
    """The service of this process for these options; equal options share one.

    This is the one place of the library with a value that outlives a call and has no owner: a
    budget for all that a process reads cannot belong to one of its readers. It holds nothing
    until something is read, and what it gives never changes a result, only when bytes come.

    A forked process has a service of its own, and forgets what its parent's held. It keeps the
    parent's connections, unused: destroying them here would take their sockets out of the set
    that the parent waits for, since the two processes share it.
    """
    mine = (os.getpid(), options)
    found = _SERVICES.get(mine)
    if found is None:
        for key, inherited in list(_SERVICES.items()):
            if key[0] != mine[0]:
                inherited.forget()
        found = _SERVICES.setdefault(mine, ReadService(options))
    return found


_SERVICES: dict[tuple[int, ReadOptions], ReadService] = {}
