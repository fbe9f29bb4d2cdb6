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

    @abstractmethod
    def close(self) -> None:
        """Let the file go. Arrays handed out stay valid; the next use opens the file again."""


def slice_view(path: str, view: np.ndarray, offset: int, length: int) -> memoryview:
    """The bytes of a range of a file in memory, without a copy; it must lie in the file."""
    check_range(path, view.size, offset, length)
    return view[offset : offset + length].data


def copy_ranges(
    path: str,
    view: np.ndarray,
    offsets: np.ndarray,
    lengths: np.ndarray,
    out: np.ndarray,
    out_offsets: np.ndarray,
) -> None:
    """Copy ranges of a file in memory to `out`; all must lie in the file and in `out`."""
    for offset, length, start in zip(
        offsets.tolist(), lengths.tolist(), out_offsets.tolist(), strict=True
    ):
        check_range(path, view.size, offset, length)
        check_out(path, out.size, start, length)
        out[start : start + length] = view[offset : offset + length]


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
