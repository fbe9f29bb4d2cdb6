"""Readers of files behind URLs."""

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from coredata._typing import Int64, UInt8
from coredata.storage.files import read_bytes
from coredata.storage.reader import ByteReader, copy_ranges, slice_view


@final
class WholeObject(ByteReader):
    """A file behind a URL, fetched whole on first use and kept in memory."""

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self._path = path
        self._storage_options = storage_options
        self._view: np.ndarray | None = None

    @property
    def path(self) -> str:
        """The URL, as it was given."""
        return self._path

    @property
    def size(self) -> int:
        """Size of the object in bytes."""
        return self.view().size

    def view(self) -> UInt8[np.ndarray, " size"]:
        """The whole object."""
        if self._view is None:
            self._view = np.frombuffer(read_bytes(self._path, self._storage_options), np.uint8)
        return self._view

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """Bytes `offset … offset + length`, without a copy."""
        return slice_view(self._path, self.view(), offset, length)

    def read_ranges(
        self,
        offsets: Int64[np.ndarray, " ranges"],
        lengths: Int64[np.ndarray, " ranges"],
        out: UInt8[np.ndarray, " bytes"],
        out_offsets: Int64[np.ndarray, " ranges"],
    ) -> None:
        """Copy ranges of the object to `out`."""
        copy_ranges(self._path, self.view(), offsets, lengths, out, out_offsets)

    def prefetch(
        self, offsets: Int64[np.ndarray, " ranges"], lengths: Int64[np.ndarray, " ranges"]
    ) -> None:
        """Nothing: the whole object comes with the first read."""

    def close(self) -> None:
        """Forget the bytes."""
        self._view = None

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return WholeObject, (self._path, self._storage_options)
