"""Rows by number: what datasets ask of a file of conversations or text."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from coredata._typing import Int64

Row = dict[str, Any]
"""Column -> value. A row may lack columns that other rows have."""


class RowSource(ABC):
    """Rows of a file by number, of which few are in memory at a time.

    A source pickles to what it takes to open the file again, and works in a process that was
    forked after it was opened, and in several threads.
    """

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: the union over all rows, sorted."""

    @property
    @abstractmethod
    def skipped(self) -> int:
        """Bad rows that were left out, because the user allowed it."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def __getitem__(self, row: int) -> Row:
        """Row number `row`, 0 … len − 1.

        Raises:
            IndexError: there is no such row.
            RowError: it cannot be read; the text names file, row and reason.
        """

    def prefetch(self, rows: Int64[np.ndarray, " rows"]) -> None:
        """Begin to fetch rows that will be read soon, where that is of use; others are left out.

        Raises:
            OSError: the file cannot be opened; reading a row would say so too.
        """
        return None

    @abstractmethod
    def where(self, row: int) -> str:
        """What errors call a row: file, and line or row number."""

    @abstractmethod
    def narrowed(self, columns: Sequence[str]) -> "RowSource":
        """The same rows with these columns only, where that saves reading the others."""

    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """What the source is, without its place: name, rows, bytes."""


def check_row(row: int, rows: int, name: str) -> None:
    """Refuse the number of a row that does not exist.

    Raises:
        IndexError: it does not.
    """
    if not 0 <= row < rows:
        raise IndexError(f"row {row} was asked of {name}, which has {rows}, numbered from 0")


@final
class JoinedRows(RowSource):
    """The rows of several sources, one after the other.

    Args:
        sources: at least one.
        name: what the whole is called.
    """

    def __init__(self, sources: Sequence[RowSource], name: str) -> None:
        self._sources = list(sources)
        self._name = name
        self._ends = np.cumsum([len(source) for source in self._sources])

    @property
    def columns(self) -> tuple[str, ...]:
        """The union over all sources, sorted."""
        return tuple(sorted({name for source in self._sources for name in source.columns}))

    @property
    def skipped(self) -> int:
        """Bad rows that all sources left out."""
        return sum(source.skipped for source in self._sources)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, row: int) -> Row:
        source, within = self._find(row)
        return source[within]

    def prefetch(self, rows: Int64[np.ndarray, " rows"]) -> None:
        """Tell each source of its rows."""
        known = rows[(rows >= 0) & (rows < len(self))]
        sources = np.searchsorted(self._ends, known, side="right")
        for number in np.unique(sources).tolist():
            before = int(self._ends[number - 1]) if number else 0
            self._sources[number].prefetch(known[sources == number] - before)

    def where(self, row: int) -> str:
        """File and line or row number."""
        source, within = self._find(row)
        return source.where(within)

    def narrowed(self, columns: Sequence[str]) -> "JoinedRows":
        """Each source with those of the columns that it has."""
        return JoinedRows([source.narrowed(columns) for source in self._sources], self._name)

    def identity(self) -> Mapping[str, Any]:
        """Name, files, and the sums of rows and bytes."""
        parts = [source.identity() for source in self._sources]
        totals = {key: sum(int(part[key]) for part in parts) for key in ("rows", "bytes")}
        return {"name": self._name, "files": len(parts), **totals}

    def _find(self, row: int) -> tuple[RowSource, int]:
        check_row(row, len(self), self._name)
        source = int(np.searchsorted(self._ends, row, side="right"))
        before = int(self._ends[source - 1]) if source else 0
        return self._sources[source], row - before
