"""An object as a file that is read from front to back."""

import io
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, final

from coredata.storage.faults import NoRangesError
from coredata.storage.options import read_options
from coredata.storage.remote import filesystem
from coredata.storage.service import read_service

_FIRST_PIECE = 256 << 10
_LARGEST_PIECE = 4 << 20
_AHEAD = 3


@final
class ObjectStream(io.RawIOBase):
    """The bytes of one version of an object, fetched in pieces a little ahead of use.

    Pieces are ranges, tried again under the rules that hold for all reading: a body that breaks
    off is fetched again, an object that is replaced meanwhile is an error. They do not go through
    the memory that readers share; a stream holds four of them, of 4 MiB at most. Reading that
    leaps (a seek) begins again with small ones.

    A web server that knows no ranges is read in one go, which cannot be tried again.

    It is for one thread of one process.

    Args:
        url: of the object.
        storage_options: for fsspec, and for reading.
        stop: where reading will end, as far as is known: nothing behind it is fetched ahead.

    Raises:
        FileNotFoundError: there is no such object.
        PermissionError: it may not be looked at.
        NoRangesError: its storage does not tell its size.
        StorageError: storage does not answer.
    """

    mode = "rb"

    def __init__(
        self, url: str, storage_options: Mapping[str, Any] | None = None, stop: int | None = None
    ) -> None:
        super().__init__()
        self._service = read_service(read_options(storage_options))
        self._object = self._service.open(url, storage_options)
        self.name = url
        self._size = self._object.facts.size
        self._stop = self._size if stop is None else min(stop, self._size)
        self._position = 0
        self._coming: deque[tuple[int, Future[bytes]]] = deque()
        self._piece, self._piece_start = b"", 0
        self._next, self._length = 0, _FIRST_PIECE
        self._pool: ThreadPoolExecutor | None = None
        self._whole: Any = None

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position, from the start, from here, or from the end.

        Raises:
            ValueError: it lies before the start.
        """
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"{self.name}: asked for the negative position {base + offset}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, or a part of it, at least one byte before the end; the bytes it got.

        Raises:
            OSError: the bytes could not be had; the text names URL, range and reason.
        """
        view = memoryview(buffer).cast("B")
        if self._position >= self._size or view.nbytes == 0:
            return 0
        data = self._here(view.nbytes)[: view.nbytes]
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Fetch no more."""
        self._drop()
        self._piece = b""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._whole is not None:
            self._whole.close()
        self._pool = self._whole = None
        super().close()

    def _here(self, wanted: int) -> memoryview:
        """Bytes from the position on, at least one of them."""
        if self._whole is None:
            try:
                return self._from_pieces(wanted)
            except NoRangesError:
                self._drop()
                self._begin_whole()
        return self._from_whole(wanted)

    def _from_pieces(self, wanted: int) -> memoryview:
        at = self._position - self._piece_start
        if not 0 <= at < len(self._piece):
            self._turn(wanted)
            at = 0
        return memoryview(self._piece)[at:]

    def _turn(self, wanted: int) -> None:
        """Let the piece that begins at the position be the present one."""
        if self._piece and self._position == self._piece_start + len(self._piece):
            self._fetch_ahead()
        self._piece, self._piece_start = b"", self._position
        if self._coming and self._coming[0][0] == self._position:
            _, future = self._coming.popleft()
            self._fetch_ahead()
            self._piece = future.result()
            return
        self._drop()
        self._length, limit = _FIRST_PIECE, self._size
        if self._position < self._stop:
            self._length, limit = max(min(wanted, _LARGEST_PIECE), _FIRST_PIECE), self._stop
        self._next = min(self._position + self._length, limit)
        self._piece = self._service.fetch(self._object, self._position, self._next)

    def _fetch_ahead(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_AHEAD, "coredata-stream")
        while len(self._coming) < _AHEAD and self._next < self._stop:
            self._length = min(2 * self._length, _LARGEST_PIECE)
            start, end = self._next, min(self._next + self._length, self._stop)
            coming = self._pool.submit(self._service.fetch, self._object, start, end)
            self._coming.append((start, coming))
            self._next = end

    def _drop(self) -> None:
        for _, future in self._coming:
            future.cancel()
        self._coming.clear()

    def _from_whole(self, wanted: int) -> memoryview:
        """The same where a server gives no ranges: from its one answer, which cannot go back."""
        if self._position < self._whole.tell():
            self._whole.close()
            self._begin_whole()
        while self._whole.tell() < self._position:
            self._whole.read(min(self._position - self._whole.tell(), _LARGEST_PIECE))
        return memoryview(self._whole.read(min(wanted, _LARGEST_PIECE)))

    def _begin_whole(self) -> None:
        remote, key = filesystem(self.name, self._object.storage_options)
        self._whole = remote.open(key, "rb", block_size=0)
