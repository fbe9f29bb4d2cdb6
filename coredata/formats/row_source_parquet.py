"""The rows of a parquet file by number, a few row groups at a time."""

import contextlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from coredata._typing import Int64
from coredata.formats.parquet import damage_told, open_parquet
from coredata.formats.row_source import Row, RowSource, check_row
from coredata.formats.rows import RowError
from coredata.storage import local_path, open_reader
from coredata.storage.byte_stream import ReaderFile

_GROUPS = 4


class _Layout(NamedTuple):
    """What the end of the file says.

    Attributes:
        ends: number of the row behind each row group.
        columns: the columns to read, sorted.
        bytes: stored bytes of all columns.
        chunks: int64 (groups, leaves, 2): begin and length of the chunk of each leaf of these
            columns.
    """

    ends: np.ndarray
    columns: tuple[str, ...]
    bytes: int
    chunks: np.ndarray


@final
class ParquetSource(RowSource):
    """Rows of a parquet file. Memory holds `groups` row groups, of the columns asked for.

    Args:
        path: a local path or any URL.
        columns: the columns to read; None for all.
        groups: how many row groups to keep; those used last are kept.
        storage_options: for a URL.

    Raises:
        DamagedFileError: no intact parquet file.
    """

    def __init__(
        self,
        path: str,
        *,
        columns: Sequence[str] | None = None,
        groups: int = _GROUPS,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        if groups < 1:
            raise ValueError(f"groups: got {groups}, need at least 1 row group in memory")
        self.path = path
        self._wanted = None if columns is None else tuple(columns)
        self._groups = groups
        self._storage_options = storage_options
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._reader = open_reader(path, mmap=False, storage_options=storage_options)
        self._file: Any = None
        self._tables: OrderedDict[int, Any] = OrderedDict()
        _ = self._layout

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows have, sorted."""
        return self._layout.columns

    @property
    def skipped(self) -> int:
        """None is: a parquet file has no bad rows that can be told beforehand."""
        return 0

    def __len__(self) -> int:
        ends = self._layout.ends
        return int(ends[-1]) if len(ends) else 0

    def __getitem__(self, row: int) -> Row:
        check_row(row, len(self), self.path)
        ends = self._layout.ends
        group = int(np.searchsorted(ends, row, side="right"))
        first = int(ends[group - 1]) if group else 0
        try:
            return self._table(group).slice(row - first, 1).to_pylist()[0]
        except UnicodeDecodeError as error:
            raise RowError(
                f"{self.where(row)}: not UTF-8: byte 0x{error.object[error.start]:02x}, "
                f"{error.start} bytes into a text ({error.reason}). Mend or remove the row"
            ) from error

    def prefetch(self, rows: Int64[np.ndarray, " rows"]) -> None:
        """Begin to fetch the row groups of rows that will be read soon, if behind a URL."""
        if local_path(self.path) is not None:
            return
        known = rows[(rows >= 0) & (rows < len(self))]
        groups = np.unique(np.searchsorted(self._layout.ends, known, side="right"))
        with self._lock:
            missing = [group for group in groups.tolist() if group not in self._tables]
        chunks = self._layout.chunks[missing].reshape(-1, 2)
        self._reader.prefetch(chunks[:, 0].copy(), chunks[:, 1].copy())

    def where(self, row: int) -> str:
        """File and row number, from 0."""
        return f"{self.path}, row {row}"

    def narrowed(self, columns: Sequence[str]) -> "ParquetSource":
        """The same rows with those of the columns that there are."""
        kept = [name for name in self.columns if name in columns]
        return ParquetSource(
            self.path,
            columns=kept,
            groups=self._groups,
            storage_options=self._storage_options,
        )

    def identity(self) -> Mapping[str, Any]:
        """Name, rows, and stored bytes of all columns."""
        name = self.path.rstrip("/").rsplit("/", 1)[-1]
        return {"name": name, "rows": len(self), "bytes": self._layout.bytes}

    @cached_property
    def _layout(self) -> _Layout:
        with self._lock:
            file = self._opened()
            metadata, names = file.metadata, file.schema_arrow.names
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        if self._wanted is not None:
            for name in self._wanted:
                if name not in names:
                    raise ValueError(f"{self.path} has no column {name}; it has {', '.join(names)}")
            names = self._wanted
        return _Layout(
            np.cumsum([group.num_rows for group in groups], dtype=np.int64),
            tuple(sorted(names)),
            sum(group.total_byte_size for group in groups),
            _chunks(groups, names),
        )

    def _table(self, group: int) -> Any:
        with self._lock:
            file = self._opened()
            if group in self._tables:
                self._tables.move_to_end(group)
                return self._tables[group]
            with damage_told(self.path, group):
                table = file.read_row_group(group, list(self.columns), use_threads=False)
            while len(self._tables) >= self._groups:
                self._tables.popitem(last=False)
            self._tables[group] = table
            return table

    def _opened(self) -> Any:
        """The open file; a new one in a forked process, since a file's position is shared."""
        if self._file is not None and self._process == os.getpid():
            return self._file
        with contextlib.ExitStack() as failed:
            stream = ReaderFile(self._reader)
            failed.callback(stream.close)
            self._file = open_parquet(self.path, stream)
            failed.pop_all()
        self._process = os.getpid()
        weakref.finalize(self, stream.close)
        return self._file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _opened_again, (self.path, self._wanted, self._groups, self._storage_options)


def _chunks(groups: Sequence[Any], names: Sequence[str]) -> np.ndarray:
    """Where the chunks of the columns lie, by row group: begin and length."""
    leaves = [
        leaf
        for leaf in range(groups[0].num_columns if groups else 0)
        if groups[0].column(leaf).path_in_schema.split(".")[0] in names
    ]
    chunks = np.empty((len(groups), len(leaves), 2), np.int64)
    for i, group in enumerate(groups):
        for j, leaf in enumerate(leaves):
            chunk = group.column(leaf)
            begins = [chunk.data_page_offset, chunk.dictionary_page_offset or 0]
            chunks[i, j] = min(begin for begin in begins if begin), chunk.total_compressed_size
    return chunks


def _opened_again(
    path: str,
    columns: Sequence[str] | None,
    groups: int,
    storage_options: Mapping[str, Any] | None,
) -> ParquetSource:
    return ParquetSource(path, columns=columns, groups=groups, storage_options=storage_options)
