"""JSON lines: one object a line, read a stretch of the file at a time.

A line ends at a newline byte and nowhere else; white space around the object (a carriage return,
say) and a byte order mark before it mean nothing. The last line needs no newline.
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coredata.formats.line_blocks import Line, LineBlock, cut_lines
from coredata.formats.rows import DamagedFileError, RowError, kind_of
from coredata.formats.rows_streams import PlainStream, is_compressed, open_stream

_CHUNK = 1 << 20
_REST = 16 << 10
_BOM = "\ufeff"
_LONGEST_LINE = 1 << 30
_MAGIC = {
    b"\x1f\x8b": ("gzip data", "name it .jsonl.gz"),
    b"\x28\xb5\x2f\xfd": ("Zstandard data", "name it .jsonl.zst"),
    b"PAR1": ("a parquet file", "name it .parquet"),
    b"BZh": ("bzip2 data", "write it again as .jsonl.gz or .jsonl.zst"),
    b"\xfd7zXZ": ("xz data", "write it again as .jsonl.gz or .jsonl.zst"),
    b"PK\x03\x04": ("a zip archive", "unpack it"),
    b"\xff\xfe": ("UTF-16 text", "write it again as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "write it again as UTF-8"),
}


@dataclass(frozen=True)
class JsonLines:
    """The rows of a JSON-lines file: plain, or compressed as its name says (.gz, .zst).

    A plain file can be read in stretches: `start` and `end` are any byte offsets, and the lines
    that start at `start` or later and before `end` belong to the stretch. Stretches that touch
    give each line exactly once, wherever they are cut.

    Memory is bounded by the longest line and a chunk of a megabyte.

    Attributes:
        path: a local path or any URL.
        start: first byte of the stretch.
        end: byte after the stretch; None for the end of the file.
        longest_line: bytes; a longer line is an error, for the file is hardly JSON lines then.
        storage_options: for the URL's file system.
    """

    path: str
    start: int = 0
    end: int | None = None
    longest_line: int = _LONGEST_LINE
    storage_options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if (self.start or self.end is not None) and is_compressed(self.path):
            raise ValueError(
                f"{self.path} is compressed, so it has no stretch from byte {self.start} "
                f"to {self.end}; read it as a whole (start=0, end=None)"
            )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, blank lines left out.

        Raises:
            RowError: a line that is no JSON object; the text names file, line, byte and reason.
        """
        for line in self.lines():
            if line.is_blank():
                continue
            try:
                row = parse_object(line)
            except RowError as error:
                place = f"{self.path}, line {line.number}, byte {line.offset}"
                raise RowError(f"{place}: {error}") from error
            yield row

    def lines(self) -> Iterator[Line]:
        """The lines as bytes, blank ones too."""
        for line, _ in self.lines_with_progress():
            yield line

    def lines_with_progress(self) -> Iterator[tuple[Line, int]]:
        """Lines, each with the number of bytes of the stretch of the file read so far.

        Raises:
            DamagedFileError: the file is no text, is cut off, or has a line that is too long.
        """
        for block, consumed in self.blocks_with_progress():
            for line in block:
                yield line, consumed

    def blocks_with_progress(self, most_bytes: int = _CHUNK) -> Iterator[tuple[LineBlock, int]]:
        """The lines that were read at a time, about `most_bytes` or the longest line.

        Raises:
            DamagedFileError: as `lines_with_progress`.
        """
        with open_stream(self.path, self.storage_options, self.end) as stream:
            offset, number = self.start, 1
            if offset and isinstance(stream, PlainStream):
                # From the byte before: what is found first is the rest of a line that started
                # earlier, or nothing if that byte is a newline. It gets the number 0.
                offset, number = offset - 1, 0
                stream.seek(offset)
            for block in self._blocks(stream.read, most_bytes, offset, number):
                own = block if block.number else block.without_first()
                if own.data:
                    yield own, stream.consumed() - self.start

    def _blocks(
        self, read: Callable[[int], bytes], most_bytes: int, offset: int, number: int
    ) -> Iterator[LineBlock]:
        pieces: list[bytes] = []
        length = 0
        position, end = offset, self.end
        while chunk := read(_wanted(most_bytes, position, end)):
            position += len(chunk)
            if offset == 0 and not pieces:
                self._refuse_other_formats(chunk)
            ended, rest = cut_lines(chunk)
            if ended:
                if pieces:
                    ended[0] = b"".join([*pieces, ended[0]])
                pieces, length = [], 0
                block = LineBlock(number, offset, ended)
                number += len(ended)
                offset += block.size
                yield block if end is None or offset <= end else block.starting_before(end)
            if end is not None and offset >= end:
                return
            if rest:
                pieces.append(rest)
                length += len(rest)
            if length > self.longest_line:
                raise DamagedFileError(
                    f"{self.path}: the line that starts at byte {offset} is longer than "
                    f"{self.longest_line} bytes. One JSON object a line is expected; a file that "
                    "is one JSON array must be written again as JSON lines."
                )
        if pieces:
            yield LineBlock(number, offset, [b"".join(pieces)], False)

    def _refuse_other_formats(self, chunk: bytes) -> None:
        for magic, (what, remedy) in _MAGIC.items():
            if chunk.startswith(magic):
                raise DamagedFileError(
                    f"{self.path} holds {what}, not JSON lines (it starts with the bytes "
                    f"{magic.hex(' ')}); {remedy}"
                )


def _wanted(most_bytes: int, position: int, end: int | None) -> int:
    """How much to read at `position`: from the end of the stretch on only the rest of a line."""
    return most_bytes if end is None else min(most_bytes, max(end - position, _REST))


def parse_all_quickly(lines: Sequence[bytes | memoryview]) -> list[Any] | None:
    """The values on all lines, of whatever kind, with the orjson package.

    None where that is not installed, or where it refuses a line: such lines go to
    `parse_quickly` one by one.
    """
    loads = _orjson_loads()
    if loads is None:
        return None
    try:
        return [loads(line) for line in lines]
    except ValueError:
        return None


def parse_quickly(line: Line) -> dict[str, Any]:
    """`parse_object`, with the orjson package where that is installed.

    The same strings come out; whole numbers of more than 64 bits may come out as floats. What
    orjson does not take (it is stricter than Python) is parsed, or refused, as ever.

    Raises:
        RowError: it is not UTF-8, not JSON, or not an object.
    """
    loads = _orjson_loads()
    if loads is not None:
        try:
            value = loads(line.data)
        except ValueError:
            return parse_object(line)
        if type(value) is dict:
            return value
    return parse_object(line)


@functools.lru_cache(maxsize=1)
def _orjson_loads() -> Callable[[bytes | memoryview], Any] | None:
    try:
        import orjson
    except ImportError:  # Not installed, or broken: `coredata doctor` says which.
        return None
    return orjson.loads


def parse_object(line: Line) -> dict[str, Any]:
    """The JSON object on a line.

    Lone surrogates written as escapes stay in its strings, for the caller to deal with.

    Raises:
        RowError: it is not UTF-8, not JSON, or not an object.
    """
    try:
        text = line.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowError(
            f"not UTF-8: byte 0x{error.object[error.start]:02x}, {error.start} bytes into the "
            f"line ({error.reason})"
        ) from error
    try:
        value = json.loads(text.removeprefix(_BOM))
    except json.JSONDecodeError as error:
        cut_off = "" if line.terminated else "; the file ends here without a newline: cut off?"
        raise RowError(f"not JSON: {error.msg} at character {error.pos + 1}{cut_off}") from error
    except RecursionError as error:
        raise RowError("JSON nested too deep") from error
    except ValueError as error:
        raise RowError(f"not usable JSON: {error}") from error
    if not isinstance(value, dict):
        raise RowError(
            f'{kind_of(value)}, not an object; a row looks like {{"text": "Once upon a time"}}'
        )
    return value
