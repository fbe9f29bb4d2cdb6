"""Where the rows of a JSON-lines file begin, so that they can be read in any order."""

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from coredata._typing import Int64
from coredata.formats.json_lines import JsonLines, Line, parse_object
from coredata.formats.rows import DamagedFileError, RowError


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
    """

    starts: Int64[np.ndarray, " rows_and_1"]
    no_rows: Int64[np.ndarray, " lines"]
    columns: tuple[str, ...]
    skipped: int = 0

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

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
            "about": np.frombuffer(about.encode("ascii"), np.uint8),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "LineIndex":
        """The index that `arrays` are of."""
        about = json.loads(arrays["about"].tobytes())
        return cls(arrays["starts"], arrays["no_rows"], tuple(about["columns"]), about["skipped"])


ARRAYS = ("starts", "no_rows", "about")
"""Names of the arrays of an index."""


def index_lines(
    path: str,
    *,
    skip_bad_rows: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    copy_to: BinaryIO | None = None,
) -> LineIndex:
    """Go through a file once, parsing every line.

    Memory: the longest line, a megabyte, and 8 bytes a row.

    Args:
        path: JSON lines, plain or compressed.
        skip_bad_rows: leave out and count lines that are no JSON objects.
        storage_options: for a URL.
        copy_to: gets the decompressed lines, at the offsets of the index.

    Raises:
        RowError: a bad line; the text names file, line, byte and reason.
        DamagedFileError: a file that is no JSON lines, or one JSON array.
    """
    starts, no_rows = array("q"), array("q")
    columns: set[str] = set()
    skipped = end = 0
    for line in JsonLines(path, storage_options=storage_options).lines():
        if copy_to is not None:
            copy_to.write(line.data)
            copy_to.write(b"\n")
        if line.is_blank():
            no_rows.append(line.number)
            continue
        if not starts and not skipped and line.data.lstrip(b" \t\r\xef\xbb\xbf").startswith(b"["):
            raise DamagedFileError(
                f"{path} is one JSON array, or begins like one; one object a line is expected. "
                "Write it again as JSON lines, for example with: jq -c '.[]' FILE > FILE.jsonl"
            )
        try:
            columns.update(parse_object(line))
        except RowError as error:
            if not skip_bad_rows:
                raise _at(path, line, error) from error
            skipped += 1
            no_rows.append(line.number)
            continue
        starts.append(line.offset)
        end = line.offset + len(line.data)
    starts.append(end)
    return LineIndex(
        np.array(starts, np.int64), np.array(no_rows, np.int64), tuple(sorted(columns)), skipped
    )


def _at(path: str, line: Line, error: RowError) -> RowError:
    return RowError(
        f"{path}, line {line.number}, byte {line.offset}: {error}. Mend or remove the line, or "
        "have bad rows left out and counted (skip_bad_rows=True)"
    )
