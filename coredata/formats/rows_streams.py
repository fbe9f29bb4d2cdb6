"""Bytes of a text file, decompressed on the way where its name ends in .gz or .zst."""

import gzip
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from coredata.formats.rows import DamagedFileError
from coredata.storage import open_binary

GZIP_NAMES = (".gz", ".gzip")
ZSTD_NAMES = (".zst", ".zstd")

# A few bytes of Zstandard may stand for 128 KiB, so little is fed at a time.
_ZSTD_INPUT = 32 << 10
_LARGEST_ZSTD_WINDOW = 1 << 31


class ByteStream(ABC):
    """A sequential reader of decompressed bytes. Use it as a context manager."""

    def __init__(
        self,
        path: str,
        storage_options: Mapping[str, Any] | None = None,
        stop: int | None = None,
    ) -> None:
        self._path = path
        self._file = open_binary(path, storage_options, stop=stop)

    @abstractmethod
    def read(self, length: int) -> bytes:
        """About `length` bytes more; none at the end.

        Raises:
            DamagedFileError: the compressed data is corrupt, stops too early or is not there.
        """

    def consumed(self) -> int:
        """How many bytes of the file itself have been read: less than came out, if compressed."""
        return self._file.tell()

    def __enter__(self) -> "ByteStream":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def is_compressed(path: str) -> bool:
    """Whether the name says that `path` must be read from its beginning, decompressing."""
    return path.endswith(GZIP_NAMES + ZSTD_NAMES)


def open_stream(
    path: str, storage_options: Mapping[str, Any] | None = None, stop: int | None = None
) -> ByteStream:
    """The bytes of `path`, decompressed as its name asks for; `stop` as in `open_binary`.

    Raises:
        FileNotFoundError: there is no such file.
        ModuleNotFoundError: a .zst file, and the package zstandard is missing.
    """
    if path.endswith(GZIP_NAMES):
        return _Gzip(path, storage_options)
    if path.endswith(ZSTD_NAMES):
        return _Zstandard(path, storage_options)
    return PlainStream(path, storage_options, stop)


class PlainStream(ByteStream):
    """The file as it is; the only stream that can start elsewhere than at the beginning."""

    def seek(self, offset: int) -> None:
        """Read from byte `offset` on."""
        self._file.seek(offset)

    def read(self, length: int) -> bytes:
        """Up to `length` bytes more; none at the end."""
        return self._file.read1(length)


class _Gzip(ByteStream):
    def __init__(self, path: str, storage_options: Mapping[str, Any] | None) -> None:
        super().__init__(path, storage_options)
        self._decompressed = gzip.GzipFile(fileobj=self._file, mode="rb")

    def read(self, length: int) -> bytes:
        try:
            part = self._decompressed.read(length)
            if not part and not self._file.tell():  # GzipFile takes no bytes for an empty file
                raise _empty(self._path, "gzip")
            return part
        except EOFError as error:
            raise _truncated(self._path, "gzip", self._decompressed.tell()) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise _corrupt(self._path, "gzip", self._decompressed.tell(), error) from error


class _Zstandard(ByteStream):
    def __init__(self, path: str, storage_options: Mapping[str, Any] | None) -> None:
        try:
            import zstandard
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"{path} is compressed with Zstandard, and reading it needs the package "
                "zstandard; pip install 'coredata[zstd]'"
            ) from error
        super().__init__(path, storage_options)
        self._error = zstandard.ZstdError
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_ZSTD_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._frame_begun = False
        self._position = 0

    def read(self, length: int) -> bytes:
        parts: list[bytes] = []
        wanted = length
        while wanted > 0:
            fed = self._file.read(_ZSTD_INPUT)
            if not fed:
                if not self._file.tell():
                    raise _empty(self._path, "Zstandard")
                if self._frame_begun:
                    raise _truncated(self._path, "Zstandard", self._position)
                break
            for part in self._decompress(fed):
                parts.append(part)
                wanted -= len(part)
                self._position += len(part)
        return b"".join(parts)

    def _decompress(self, fed: bytes) -> list[bytes]:
        parts = []
        while fed:
            self._frame_begun = True
            try:
                parts.append(self._frame.decompress(fed))
            except self._error as error:
                raise _corrupt(self._path, "Zstandard", self._position, error) from error
            fed = b""
            if self._frame.eof:
                fed = self._frame.unused_data
                self._frame = self._decompressor.decompressobj()
                self._frame_begun = False
        return parts


def _truncated(path: str, format_name: str, position: int) -> DamagedFileError:
    return DamagedFileError(
        f"{path}: the {format_name} data ends too early, after {position} bytes of text. "
        "The file was cut off; fetch or write it again."
    )


def _empty(path: str, format_name: str) -> DamagedFileError:
    return DamagedFileError(
        f"{path}: the {format_name} data ends before it begins: the file has 0 bytes. It was cut "
        "off; fetch or write it again, or leave it out if it was to be empty."
    )


def _corrupt(path: str, format_name: str, position: int, error: Exception) -> DamagedFileError:
    return DamagedFileError(
        f"{path}: this is no intact {format_name} data ({error}), after {position} bytes of text. "
        "Fetch or write the file again, or name it as what it is (.jsonl for plain text)."
    )
