"""Rows as conversations or text: what datasets of them read from."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from coredata._typing import Int64
from coredata.datasets.identity import describe
from coredata.datasets.index_cache import IndexCache
from coredata.datasets.sft_config import SFTDatasetConfig
from coredata.formats import RowError, RowSource, open_rows
from coredata.formats.row_bytes import absolute, version_of
from coredata.formats.row_index import ARRAYS, LineIndex, index_lines
from coredata.varlen.schemas import (
    MESSAGES,
    TEXT,
    convert_row,
    detect_schema,
    raw_messages,
    schema_columns,
)

Item = Sequence[Mapping[str, Any]] | str
"""Messages of a row, or its text."""


@runtime_checkable
class ItemSource(Protocol):
    """Items by number. `Conversations` (files) and `ItemList` (memory) are such."""

    def __len__(self) -> int:
        """Number of items."""
        ...

    def __getitem__(self, row: int, /) -> Item:
        """Messages or text of one row."""
        ...

    def where(self, row: int) -> str:
        """What errors call a row."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """What the source is, without its place."""
        ...


@final
class ItemList:
    """Items in memory.

    Args:
        items: messages or text of each row.
        name: what errors and fingerprints call them.
    """

    def __init__(self, items: Sequence[Item], name: str = "a list") -> None:
        self._items = items
        self._name = name

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, row: int) -> Item:
        return self._items[row]

    def where(self, row: int) -> str:
        """Name and number."""
        return f"{self._name}, row {row}"

    def identity(self) -> Mapping[str, Any]:
        """Name and count."""
        return {"name": self._name, "rows": len(self)}


@final
class Conversations:
    """Items of the rows of a file, converted as their columns say.

    Args:
        rows: where rows come from.
        keep_turns: give the turns of `messages` as they are, with all their keys; otherwise as
            `convert_row` makes them.

    Raises:
        ValueError: no schema fits the columns.
    """

    def __init__(self, rows: RowSource, *, keep_turns: bool = False) -> None:
        self.schema = detect_schema(rows.columns)
        self.rows = rows.narrowed(schema_columns(self.schema))
        self._keep_turns = keep_turns and self.schema == MESSAGES

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Item:
        """Messages or text of a row.

        Raises:
            RowError: a ValueError; the row cannot be read or converted; the text names file, row,
                field and reason.
        """
        found = self.rows[row]
        try:
            return raw_messages(found) if self._keep_turns else convert_row(found, self.schema)
        except ValueError as error:
            raise RowError(f"{self.rows.where(row)}: {error}") from error

    def prefetch(self, rows: Int64[np.ndarray, " rows"]) -> None:
        """Begin to fetch rows that will be read soon, where that is of use."""
        self.rows.prefetch(rows)

    def where(self, row: int) -> str:
        """File, and line or row number."""
        return self.rows.where(row)

    def identity(self) -> Mapping[str, Any]:
        """Name, rows, bytes and schema."""
        return {**self.rows.identity(), "schema": self.schema}


def open_conversations(
    path: str, config: SFTDatasetConfig, *, keep_turns: bool = False
) -> Conversations:
    """The rows of `path` (see `open_rows`) as conversations.

    Indices of JSON-lines files are kept in `path_to_cache`, if there is one, for as long as the
    file stays the same.

    Raises:
        FileNotFoundError: no such file or data set.
        RowError: a bad line; the text names file, line and reason.
        ValueError: no schema fits the columns; the text names the file.
    """
    rows = open_rows(
        path,
        skip_bad_rows=config.skip_bad_rows,
        mmap=config.mmap_bin_files,
        storage_options=config.storage_options,
        find_index=None if config.path_to_cache is None else _CachedIndex(config),
    )
    try:
        return Conversations(rows, keep_turns=keep_turns)
    except ValueError as error:
        raise ValueError(f"{path} ({len(rows)} rows): {error}") from error


def open_chats(path: str, config: SFTDatasetConfig) -> Conversations:
    """The rows of `path` as conversations whose turns keep all their keys.

    Raises:
        ValueError: rows of plain text; or see `open_conversations`.
    """
    conversations = open_conversations(path, config, keep_turns=True)
    if conversations.schema == TEXT:
        raise ValueError(
            f"{path} has plain text (a column text), but packs are made of conversations. Use "
            "VarlenDataset for text, or give rows with a column messages"
        )
    return conversations


@final
class _CachedIndex:
    """Finds the index of a file in the cache of a configuration, or makes it and puts it there."""

    def __init__(self, config: SFTDatasetConfig) -> None:
        self._config = config

    def __call__(self, path: str) -> LineIndex:
        config = self._config
        identifiers = {
            "class": "LineIndex",
            "path": absolute(path),
            "version": version_of(path, config.storage_options),
            "skip_bad_rows": config.skip_bad_rows,
        }
        cache = IndexCache(str(config.path_to_cache), describe(identifiers), "LineIndex", "all")
        arrays = cache.load(ARRAYS)
        if arrays is not None:
            return LineIndex.of_arrays(arrays)
        index = index_lines(
            path, skip_bad_rows=config.skip_bad_rows, storage_options=config.storage_options
        )
        cache.store(index.arrays())
        return index
