"""Readers of objects by ranges, through what the process keeps of all of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from coredata._typing import Int64, UInt8
from coredata.storage.block_checksums import BlockChecksums
from coredata.storage.checksum_files import open_checksums
from coredata.storage.options import read_options
from coredata.storage.reader import ByteReader, check_out, check_range
from coredata.storage.service import Counters, ReadService, RemoteObject, read_service

_FIRST_STRETCH = 128 << 10


@final
class RangedObject(ByteReader):
    """A file behind a URL, of which ranges are fetched as they are needed, or ahead of that.

    All readers of a process with equal `ReadOptions` share one memory budget, one set of threads
    and their counters. Every range belongs to one version of the object: if it changes while it
    is in use, that is an error. A file that is read from front to back is fetched ahead without
    being told.

    Args:
        path: any URL that fsspec knows.
        storage_options: for fsspec, and under "coredata" `ReadOptions`.

    Raises:
        ValueError: options for reading that are out of range.
    """

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self._path = path
        self._storage_options = storage_options
        self._options = read_options(storage_options)
        self._object: RemoteObject | None = None
        self._next = -1
        self._ahead_to = 0
        self._stretch = _FIRST_STRETCH

    @property
    def path(self) -> str:
        """The URL, as it was given."""
        return self._path

    @property
    def size(self) -> int:
        """Size of the object in bytes."""
        return self._open().facts.size

    @property
    def checksums(self) -> BlockChecksums | None:
        """The checksums that what is fetched is compared with; None if that is not asked for."""
        return self._open().checksums

    @property
    def counters(self) -> Counters:
        """What was read by all readers of the process that share this one's options."""
        return self._service().counters

    def looks_ahead(self) -> bool:
        """True: it can fetch while something else is done."""
        return True

    def view(self) -> None:
        """None: the bytes have to be fetched."""

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """Bytes `offset … offset + length`.

        Raises:
            ValueError: a range that leaves the object.
            OSError: the bytes could not be had; the text names URL, range and reason.
        """
        out = np.empty(max(length, 0), np.uint8)
        ends = np.array([offset], np.int64), np.array([length], np.int64)
        self.read_ranges(*ends, out, np.zeros(1, np.int64))
        return out.data

    def read_ranges(
        self,
        offsets: Int64[np.ndarray, " ranges"],
        lengths: Int64[np.ndarray, " ranges"],
        out: UInt8[np.ndarray, " bytes"],
        out_offsets: Int64[np.ndarray, " ranges"],
    ) -> None:
        """Copy ranges of the object to `out`; what has to be fetched is fetched together.

        Raises:
            ValueError: a range that leaves the object or `out`.
            OSError: the bytes could not be had; the text names URL, range and reason.
        """
        found = self._open()
        for offset, length, start in zip(
            offsets.tolist(), lengths.tolist(), out_offsets.tolist(), strict=True
        ):
            check_range(self._path, found.facts.size, offset, length)
            check_out(self._path, out.size, start, length)
        service = self._service()
        if offsets.size == 1:
            self._follow(service, found, int(offsets[0]), int(lengths[0]))
        service.read_ranges(found, offsets, lengths, out, out_offsets)

    def prefetch(
        self, offsets: Int64[np.ndarray, " ranges"], lengths: Int64[np.ndarray, " ranges"]
    ) -> None:
        """Begin to fetch these ranges, and return; what leaves the object is cut off.

        Raises:
            OSError: the object cannot be opened.
        """
        found = self._open()
        starts = np.clip(offsets, 0, found.facts.size)
        stops = np.clip(offsets + lengths, starts, found.facts.size)
        self._service().prefetch(found, starts, stops - starts)

    def close(self) -> None:
        """Forget which version it was; what was fetched stays for a while, until others need room.

        The next use opens the object as it is then.
        """
        self._object = None

    def _service(self) -> ReadService:
        return read_service(self._options)

    def _open(self) -> RemoteObject:
        if self._object is None:
            found = self._service().open(self._path, self._storage_options)
            if self._options.checksums and self._path.endswith(".bin"):
                checksums = open_checksums(self._path, found.facts.size, self._storage_options)
                found = replace(found, checksums=checksums)
            self._object = found
        return self._object

    def _follow(self, service: ReadService, found: RemoteObject, offset: int, length: int) -> None:
        """Where reads follow each other, fetch what comes next, in growing stretches."""
        following = offset == self._next
        self._next = offset + length
        if not following:
            self._stretch, self._ahead_to = _FIRST_STRETCH, 0
            return
        if self._next + self._stretch // 2 > self._ahead_to:
            start = max(self._next, self._ahead_to)
            stop = min(start + self._stretch, found.facts.size)
            self._stretch = min(2 * self._stretch, self._options.share // 8)
            self._ahead_to = stop
            if start < stop:
                service.prefetch(found, np.array([start]), np.array([stop - start]))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return RangedObject, (self._path, self._storage_options)
