"""Which source of rows suits a path."""

from collections.abc import Callable, Mapping
from typing import Any

from coredata.formats.parquet import PARQUET_NAMES
from coredata.formats.row_index import LineIndex
from coredata.formats.row_source import JoinedRows, RowSource
from coredata.formats.row_source_hub import hub_files, is_hub_name
from coredata.formats.row_source_lines import JsonLinesSource
from coredata.formats.row_source_parquet import ParquetSource
from coredata.storage import expand

FindIndex = Callable[[str], LineIndex | None]
"""Gives the index of a JSON-lines file if there is one already."""


def open_rows(
    path: str,
    *,
    skip_bad_rows: bool = False,
    mmap: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    find_index: FindIndex | None = None,
) -> RowSource:
    """The rows of `path`: a file, files that a pattern matches, or `owner/repo` on the Hub.

    Names that end in .parquet or .pq are parquet; all else is JSON lines, or one JSON array of
    objects, plain or compressed (.gz, .zst).

    Args:
        path: a local path, a pattern, any URL, or `owner/repo`: the train split of a data set.
        skip_bad_rows: leave out and count lines that are no JSON objects, instead of an error.
        mmap: map local files of lines.
        storage_options: for a URL.
        find_index: asked for the index of each JSON-lines file.

    Raises:
        FileNotFoundError: no such file, pattern or data set.
        IsADirectoryError: a directory.
        RowError: a bad line; the text names file, line, byte and reason.
        DamagedFileError: a file that is not what its name says.
    """
    find_files = hub_files if is_hub_name(path) else expand

    def open_one(file: str) -> RowSource:
        if file.endswith(PARQUET_NAMES):
            return ParquetSource(file, storage_options=storage_options)
        return JsonLinesSource(
            file,
            skip_bad_rows=skip_bad_rows,
            index=None if find_index is None else find_index(file),
            mmap=mmap,
            storage_options=storage_options,
        )

    sources = [open_one(file) for file in find_files(path, storage_options)]
    return sources[0] if len(sources) == 1 else JoinedRows(sources, path)
