"""Where the rows of a file of JSON objects begin, so that they can be read in any order."""

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from coredata._typing import Int64
from coredata.formats.json_lines import JsonLines, Line, parse_object
from coredata.formats.row_array import array_elements
from coredata.formats.rows import RowError
from coredata.formats.rows_streams import open_stream

_PEEKED = 1 << 16
_BOM = b"\xef\xbb\xbf"
_WHITE_SPACE = b" \t\r\n"


@dataclass(frozen=True)
class LineIndex:
    """Eight bytes a row, and what was met on the way.

    Attributes:
        starts: offset of the first byte of each row, then the end of the last; in bytes of the
            decompressed file.
        no_rows: numbers, from 1, of the lines that are no rows: blank ones, and bad ones if they
            are left out.
        columns: the union of the rows' keys, sorted.
        skipped: how many lines are bad.
        ends: of a file that is one JSON array: offset behind each row; else empty. "Line" means
            element then.
    """

    starts: Int64[np.ndarray, " rows_and_1"]
    no_rows: Int64[np.ndarray, " lines"]
    columns: tuple[str, ...]
    skipped: int = 0
    ends: Int64[np.ndarray, " rows_or_0"] = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

    @property
    def is_array(self) -> bool:
        """Whether the file is one JSON array."""
        return len(self.ends) > 0

    def line_number(self, row: int) -> int:
        """The line, counted from 1, that row number `row` is on."""
        rows_before = self.no_rows - 1 - np.arange(len(self.no_rows))
        return row + 1 + int(np.searchsorted(rows_before, row, side="right"))

    def arrays(self) -> dict[str, np.ndarray]:
        """The index as arrays that can be stored."""
        about = json.dumps({"columns": self.columns, "skipped": self.skipped})
        return {
            "starts": self.starts,
            "no_rows": self.no_rows,
            "ends": self.ends,
            "about": np.frombuffer(about.encode("ascii"), np.uint8),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "LineIndex":
        """The index that `arrays` are of."""
        about = json.loads(arrays["about"].tobytes())
        return cls(
            arrays["starts"],
            arrays["no_rows"],
            tuple(about["columns"]),
            about["skipped"],
            arrays["ends"],
        )


ARRAYS = ("starts", "no_rows", "ends", "about")
"""Names of the arrays of an index."""


def index_lines(
    path: str,
    *,
    skip_bad_rows: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    copy_to: BinaryIO | None = None,
) -> LineIndex:
    """Go through a file once, parsing every line, or every element of one JSON array.

    Memory: the longest row, some megabytes, and 8 bytes a row (16 in an array).

    Args:
        path: JSON lines or a JSON array of objects, plain or compressed.
        skip_bad_rows: leave out and count rows that are no JSON objects.
        storage_options: for a URL.
        copy_to: gets the decompressed file, or lines, at the offsets of the index.

    Raises:
        RowError: a bad row; the text names file, line, byte and reason.
        DamagedFileError: a file that is neither JSON lines nor an array of objects.
    """
    found = _Found(path, skip_bad_rows)
    if begins_with_bracket(path, storage_options):
        with open_stream(path, storage_options) as stream:

            def read(length: int) -> bytes:
                data = stream.read(length)
                if copy_to is not None:
                    copy_to.write(data)
                return data

            for number, element in enumerate(array_elements(read, path), start=1):
                line = Line(number, element.offset, element.data, element.complete)
                if found.add(line, "element"):
                    found.ends.append(element.offset + len(element.data))
        return found.index()
    for line in JsonLines(path, storage_options=storage_options).lines():
        if copy_to is not None:
            copy_to.write(line.data)
            copy_to.write(b"\n")
        if line.is_blank():
            found.no_rows.append(line.number)
        else:
            found.add(line, "line")
    return found.index()


def begins_with_bracket(path: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Whether the first thing in a file is a square bracket, so that it is one JSON array."""
    with open_stream(path, storage_options) as stream:
        while chunk := stream.read(_PEEKED):
            text = chunk.removeprefix(_BOM).lstrip(_WHITE_SPACE)
            if text:
                return text.startswith(b"[")
    return False


class _Found:
    """What is known so far of the rows of a file."""

    def __init__(self, path: str, skip_bad_rows: bool) -> None:
        self.path = path
        self.skip_bad_rows = skip_bad_rows
        self.starts, self.no_rows, self.ends = array("q"), array("q"), array("q")
        self.columns: set[str] = set()
        self.skipped = self.end = 0

    def add(self, line: Line, called: str) -> bool:
        """Take a row, or count it as bad and give False."""
        try:
            self.columns.update(parse_object(line))
        except RowError as error:
            if not self.skip_bad_rows:
                raise RowError(
                    f"{self.path}, {called} {line.number}, byte {line.offset}: {error}. Mend or "
                    "remove it, or have bad rows left out and counted (skip_bad_rows=True)"
                ) from error
            self.skipped += 1
            self.no_rows.append(line.number)
            return False
        self.starts.append(line.offset)
        self.end = line.offset + len(line.data)
        return True

    def index(self) -> LineIndex:
        """The index of all rows taken."""
        self.starts.append(self.end)
        starts, no_rows, ends = (
            np.array(values, np.int64) for values in (self.starts, self.no_rows, self.ends)
        )
        return LineIndex(starts, no_rows, tuple(sorted(self.columns)), self.skipped, ends)
