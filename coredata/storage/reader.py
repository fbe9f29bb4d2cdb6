"""Random access to the bytes of one file: the interface, and the checks that all readers share."""

from abc import ABC, abstractmethod

import numpy as np

from coredata._typing import Int64, UInt8


class ByteReader(ABC):
    """The bytes of one file, whose size does not change while it is read.

    A reader pickles to its path and options. It opens the file on first use, again after
    unpickling, and works in a process that was forked after it was opened.
    """

    @property
    @abstractmethod
    def path(self) -> str:
        """The path or URL, as it was given."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Size of the file in bytes."""

    @abstractmethod
    def view(self) -> UInt8[np.ndarray, " size"] | None:
        """The whole file as a read-only array, where that costs no read; None elsewhere."""

    @abstractmethod
    def read(self, offset: int, length: int) -> bytes | memoryview:
        """Bytes `offset … offset + length`.

        Raises:
            ValueError: a range that leaves the file.
        """

    @abstractmethod
    def read_ranges(
        self,
        offsets: Int64[np.ndarray, " ranges"],
        lengths: Int64[np.ndarray, " ranges"],
        out: UInt8[np.ndarray, " bytes"],
        out_offsets: Int64[np.ndarray, " ranges"],
    ) -> None:
        """Copy range i of the file to `out[out_offsets[i] :]`; units are bytes.

        Raises:
            ValueError: a range that leaves the file or `out`.
        """

    @abstractmethod
    def prefetch(
        self, offsets: Int64[np.ndarray, " ranges"], lengths: Int64[np.ndarray, " ranges"]
    ) -> None:
        """Hint that these ranges will be read soon. Local readers do nothing with it."""

    def looks_ahead(self) -> bool:
        """Whether hints are of use; finding out what to hint at costs something too."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Let the file go. Arrays handed out stay valid; the next use opens the file again."""


def check_range(path: str, size: int, offset: int, length: int) -> None:
    """Raise ValueError unless the range lies in the file."""
    if offset < 0 or length < 0 or length > size - offset:
        raise ValueError(
            f"asked for {length} bytes from byte {offset} of {path}, which has {size} bytes"
        )


def check_out(path: str, size: int, offset: int, length: int) -> None:
    """Raise ValueError unless `length` bytes fit in an output at `offset`."""
    if offset < 0 or length > size - offset:
        raise ValueError(
            f"{length} bytes of {path} do not fit at byte {offset} of an output of {size} bytes"
        )


class InMemoryReader(ByteReader):
    """A reader of which the whole file is an array once it is opened."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._view: np.ndarray | None = None

    @abstractmethod
    def _load(self) -> np.ndarray:
        """The bytes of the file, as a read-only array."""

    @property
    def path(self) -> str:
        """The path or URL, as it was given."""
        return self._path

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.view().size

    def view(self) -> UInt8[np.ndarray, " size"]:
        """The whole file; it lives as long as any array that views it."""
        if self._view is None:
            self._view = self._load()
        return self._view

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """Bytes `offset … offset + length`, without a copy."""
        view = self.view()
        check_range(self._path, view.size, offset, length)
        return view[offset : offset + length].data

    def read_ranges(
        self,
        offsets: Int64[np.ndarray, " ranges"],
        lengths: Int64[np.ndarray, " ranges"],
        out: UInt8[np.ndarray, " bytes"],
        out_offsets: Int64[np.ndarray, " ranges"],
    ) -> None:
        """Copy ranges of the file to `out`."""
        view = self.view()
        for offset, length, start in zip(
            offsets.tolist(), lengths.tolist(), out_offsets.tolist(), strict=True
        ):
            check_range(self._path, view.size, offset, length)
            check_out(self._path, out.size, start, length)
            out[start : start + length] = view[offset : offset + length]

    def prefetch(
        self, offsets: Int64[np.ndarray, " ranges"], lengths: Int64[np.ndarray, " ranges"]
    ) -> None:
        """Nothing: the whole file is there, or mapped."""

    def close(self) -> None:
        """Forget the bytes, or the mapping."""
        self._view = None
