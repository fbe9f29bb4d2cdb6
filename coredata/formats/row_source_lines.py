"""The rows of a file of JSON lines, or of one JSON array, by number."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from coredata._typing import Int64
from coredata.formats.json_lines import Line, parse_object
from coredata.formats.row_bytes import RowBytes, Spool, file_bytes
from coredata.formats.row_index import LineIndex, index_lines
from coredata.formats.row_source import Row, RowSource, check_row
from coredata.formats.rows import RowError
from coredata.formats.rows_streams import is_compressed
from coredata.storage import local_path


@final
class JsonLinesSource(RowSource):
    """Rows of a file of JSON lines, found by an index of byte offsets.

    A file whose first character is a square bracket is one JSON array of objects, each a row.

    The constructor goes through the file once (see `index_lines`), unless it is given the index.
    A compressed file (.gz, .zst) is decompressed into a temporary file that has no name, once in
    every process that reads rows.

    Args:
        path: a local path or any URL.
        skip_bad_rows: leave out and count rows that are no JSON objects, instead of an error.
        index: the index of this very file, if there is one.
        mmap: map a local file, or read it by position.
        storage_options: for a URL.

    Raises:
        RowError: a bad row; the text names file, line, byte and reason.
        DamagedFileError: a file that is neither JSON lines nor an array of objects.
    """

    def __init__(
        self,
        path: str,
        *,
        skip_bad_rows: bool = False,
        index: LineIndex | None = None,
        mmap: bool = True,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self._mmap = mmap
        self._storage_options = storage_options
        self._lock = threading.Lock()
        self._bytes: RowBytes | None = None
        if index is None:
            index, self._bytes = self._go_through(skip_bad_rows)
        self.index = index

    @property
    def columns(self) -> tuple[str, ...]:
        """The union of the rows' keys."""
        return self.index.columns

    @property
    def skipped(self) -> int:
        """Bad lines that were left out."""
        return self.index.skipped

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, row: int) -> Row:
        check_row(row, len(self), self.path)
        index = self.index
        start = int(index.starts[row])
        if index.is_array:
            data = self._opened().read(start, int(index.ends[row]) - start)
        else:
            data = self._opened().read(start, int(index.starts[row + 1]) - start)
            data = data.partition(b"\n")[0]
        try:
            return parse_object(Line(row, start, data, True))
        except RowError as error:
            raise RowError(
                f"{self.where(row)}: {error}. It was another row when the file was indexed; do "
                "not change files that are in use"
            ) from error

    def prefetch(self, rows: Int64[np.ndarray, " rows"]) -> None:
        """Begin to fetch the lines of rows that will be read soon, if the file is behind a URL."""
        if local_path(self.path) is None and not is_compressed(self.path):
            index = self.index
            known = rows[(rows >= 0) & (rows < len(index))]
            starts = np.asarray(index.starts)[known]
            ends = index.ends[known] if index.is_array else index.starts[known + 1]
            self._opened().prefetch(starts, ends - starts)

    def where(self, row: int) -> str:
        """File and line number (in a JSON array, number of the element), counted from 1."""
        called = "element" if self.index.is_array else "line"
        return f"{self.path}, {called} {self.index.line_number(row)}"

    def narrowed(self, columns: Sequence[str]) -> "JsonLinesSource":
        """Itself: lines are read whole."""
        return self

    def identity(self) -> Mapping[str, Any]:
        """Name, rows, and bytes of lines."""
        name = self.path.rstrip("/").rsplit("/", 1)[-1]
        return {"name": name, "rows": len(self), "bytes": int(self.index.starts[-1])}

    def _opened(self) -> RowBytes:
        with self._lock:
            if self._bytes is None:
                spooled = self._go_through(True)[1] if is_compressed(self.path) else None
                self._bytes = spooled or self._plain()
            return self._bytes

    def _go_through(self, skip_bad_rows: bool) -> tuple[LineIndex, RowBytes | None]:
        """The index, and if the file is compressed, its decompressed bytes."""
        spool = Spool() if is_compressed(self.path) else None
        index = index_lines(
            self.path,
            skip_bad_rows=skip_bad_rows,
            storage_options=self._storage_options,
            copy_to=None if spool is None else spool.file,
        )
        if spool is not None:
            spool.file.flush()
        return index, spool

    def _plain(self) -> RowBytes:
        return file_bytes(self.path, mmap=self._mmap, storage_options=self._storage_options)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _opened_again, (self.path, self.index, self._mmap, self._storage_options)


def _opened_again(
    path: str, index: LineIndex, mmap: bool, storage_options: Mapping[str, Any] | None
) -> JsonLinesSource:
    return JsonLinesSource(path, index=index, mmap=mmap, storage_options=storage_options)
