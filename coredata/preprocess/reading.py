"""Rows of one shard, with their texts or with what is wrong with them."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coredata.formats.json_lines import JsonLines, parse_all_quickly, parse_quickly
from coredata.formats.line_blocks import LineBlock
from coredata.formats.parquet import ParquetRows
from coredata.formats.rows import RowError, texts_of
from coredata.formats.rows_streams import is_compressed
from coredata.preprocess.plan import Shard
from coredata.preprocess.report import RowCounts
from coredata.text import replace_lone_surrogates

_EXCERPT = 200
_LEAST_READ = 1 << 16


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row of the input.

    Attributes:
        number: of the line in its shard, from 1; of the row in its file, in parquet, from 1.
        offset: byte of the file (decompressed) at which the line starts; None in parquet.
        texts: for each key, its texts; empty if there is a problem.
        problem: why it cannot be used; None if it can.
        excerpt: the beginning of a line with a problem.
    """

    number: int
    offset: int | None
    texts: tuple[list[str], ...]
    problem: str | None = None
    excerpt: str = ""


@dataclass(frozen=True)
class RowBatch:
    """Rows that follow one another.

    Attributes:
        rows: gives them one by one.
        texts: for each key the texts of all rows, if every row is a good one of the usual kind,
            whose values are strings; None otherwise, and then `rows` tells.
    """

    rows: Callable[[], list[TextRow]]
    texts: tuple[list[list[str]], ...] | None = None


class ShardRows:
    """The rows of a shard, read as a stream, counting on the way.

    Attributes:
        input_bytes: of the file, read so far.
    """

    def __init__(
        self,
        shard: Shard,
        json_keys: Sequence[str],
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.shard = shard
        self.input_bytes = 0
        self._lines = 0
        self._blank_lines = 0
        self._replaced_surrogates = 0
        self._text_bytes = 0
        self._keys = tuple(json_keys)
        self._options = storage_options

    def batches(self, most_bytes: int) -> Iterator[RowBatch]:
        """The rows, blank lines left out, in batches of `most_bytes` or one longer row.

        Raises:
            DamagedFileError: the file is broken.
            FileNotFoundError: the file is gone.
        """
        return self._parquet(most_bytes) if self.shard.is_parquet else self._text(most_bytes)

    def _text(self, most_bytes: int) -> Iterator[RowBatch]:
        shard = self.shard
        if is_compressed(shard.path):
            source = JsonLines(shard.path, storage_options=self._options)
        else:
            source = JsonLines(shard.path, shard.start, shard.end, storage_options=self._options)
        read_at_a_time = max(most_bytes, _LEAST_READ)
        for block, consumed in source.blocks_with_progress(read_at_a_time):
            self.input_bytes = min(consumed, shard.input_bytes)
            for piece in block.pieces(most_bytes):
                self._lines += len(piece.data)
                self._text_bytes += piece.size
                yield self._batch(piece)

    def _batch(self, block: LineBlock) -> RowBatch:
        values = parse_all_quickly(block.data)
        texts = None if values is None else _strings(values, self._keys)
        if texts is not None:  # blank lines and lone surrogates are refused by the quick parser
            return RowBatch(functools.partial(self._rows, block), texts)
        rows = self._rows(block)
        return RowBatch(lambda: rows)

    def _rows(self, block: LineBlock) -> list[TextRow]:
        rows = []
        for line in block:
            if line.is_blank():
                self._blank_lines += 1
                continue
            try:
                texts = self._texts(parse_quickly(line), line.data)
            except RowError as error:
                excerpt = line.data[:_EXCERPT].decode("utf-8", errors="replace")
                rows.append(TextRow(line.number, line.offset, (), str(error), excerpt))
            else:
                rows.append(TextRow(line.number, line.offset, texts))
        return rows

    def _parquet(self, most_bytes: int) -> Iterator[RowBatch]:
        rows: list[TextRow] = []
        collected = 0
        for row, size in self._parquet_rows():
            rows.append(row)
            collected += size
            if collected >= most_bytes:
                yield RowBatch(functools.partial(list, rows))
                rows, collected = [], 0
        yield RowBatch(lambda: rows)

    def _parquet_rows(self) -> Iterator[tuple[TextRow, int]]:
        shard = self.shard
        source = ParquetRows(
            shard.path, self._keys, shard.start, shard.end, storage_options=self._options
        )
        for number, (row, size) in enumerate(source.rows(), start=shard.first_row + 1):
            self.input_bytes = min(self.input_bytes + size, shard.input_bytes)
            self._lines += 1
            self._text_bytes += size
            try:
                if isinstance(row, RowError):
                    raise row
                texts = self._texts(row, b"")
            except RowError as error:
                yield TextRow(number, None, (), str(error)), size
            else:
                yield TextRow(number, None, texts), size

    def counts(self, bad_lines: int = 0) -> RowCounts:
        """Of what has been read so far; bad lines are counted by whoever skips them."""
        return RowCounts(
            self._lines, self._blank_lines, bad_lines, self._replaced_surrogates, self._text_bytes
        )

    def _texts(self, row: Mapping[str, Any], line: bytes) -> tuple[list[str], ...]:
        """The texts of a row; lone surrogates, which only escapes in its `line` make, replaced."""
        texts = tuple(texts_of(row, key) for key in self._keys)
        if all(text.isascii() for of_key in texts for text in of_key) or b"\\u" not in line:
            return texts
        return tuple(map(self._mended, texts))

    def _mended(self, texts: list[str]) -> list[str]:
        mended = [replace_lone_surrogates(text) for text in texts]
        self._replaced_surrogates += sum(times for _, times in mended)
        return [text for text, _ in mended]


def _strings(values: list[Any], keys: Sequence[str]) -> tuple[list[list[str]], ...] | None:
    """For each key its string in each value, as a list of one; None if a value is otherwise."""
    if any(type(value) is not dict for value in values):
        return None
    try:
        found = [[value[key] for value in values] for key in keys]
    except KeyError:
        return None
    if any(type(text) is not str for of_key in found for text in of_key):
        return None
    return tuple([[text] for text in of_key] for of_key in found)
