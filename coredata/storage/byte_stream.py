"""A reader as a file object, for libraries that want one."""

import io
from typing import final

import numpy as np

from coredata.storage.reader import ByteReader


@final
class ReaderFile(io.RawIOBase):
    """The bytes of a reader, with a position of its own; it can be sought, and not written."""

    def __init__(self, reader: ByteReader) -> None:
        self._reader = reader
        self._position = 0

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
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._reader.size}
        position = base[whence] + offset
        if position < 0:
            raise ValueError(f"{self._reader.path}: asked for the negative position {position}")
        self._position = position
        return position

    def readinto(self, buffer: "memoryview | bytearray", /) -> int:  # type: ignore[override]
        """Fill a buffer, less at the end; the bytes that it got."""
        out = np.frombuffer(buffer, np.uint8)
        length = max(min(out.size, self._reader.size - self._position), 0)
        if length:
            one = np.array([self._position], np.int64), np.array([length], np.int64)
            self._reader.read_ranges(*one, out[:length], np.zeros(1, np.int64))
        self._position += length
        return length
