"""Rows of one shard, with their texts or with what is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coredata.formats.json_lines import JsonLines, parse_quickly
from coredata.formats.parquet import ParquetRows
from coredata.formats.rows import RowError, texts_of
from coredata.formats.rows_streams import is_compressed
from coredata.preprocess.plan import Shard
from coredata.preprocess.report import RowCounts
from coredata.text import replace_lone_surrogates

_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row of the input.

    Attributes:
        number: of the line in its shard, from 1; of the row in its file, in parquet, from 1.
        offset: byte of the file (decompressed) at which the line starts; None in parquet.
        texts: for each key, its texts; empty if there is a problem.
        size: bytes.
        problem: why it cannot be used; None if it can.
        excerpt: the beginning of a line with a problem.
    """

    number: int
    offset: int | None
    texts: tuple[list[str], ...]
    size: int
    problem: str | None = None
    excerpt: str = ""


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

    def __iter__(self) -> Iterator[TextRow]:
        """The rows, blank lines left out.

        Raises:
            DamagedFileError: the file is broken.
            FileNotFoundError: the file is gone.
        """
        return self._parquet_rows() if self.shard.is_parquet else self._text_rows()

    def _text_rows(self) -> Iterator[TextRow]:
        shard = self.shard
        if is_compressed(shard.path):
            source = JsonLines(shard.path, storage_options=self._options)
        else:
            source = JsonLines(shard.path, shard.start, shard.end, storage_options=self._options)
        for line, consumed in source.lines_with_progress():
            size = len(line.data) + line.terminated
            blank = line.is_blank()
            self.input_bytes = min(consumed, shard.input_bytes)
            self._count(size, blank)
            if blank:
                continue
            try:
                texts = self._texts(parse_quickly(line), line.data)
            except RowError as error:
                excerpt = line.data[:_EXCERPT].decode("utf-8", errors="replace")
                yield TextRow(line.number, line.offset, (), size, str(error), excerpt)
            else:
                yield TextRow(line.number, line.offset, texts, size)

    def _parquet_rows(self) -> Iterator[TextRow]:
        shard = self.shard
        source = ParquetRows(
            shard.path, self._keys, shard.start, shard.end, storage_options=self._options
        )
        for number, (row, size) in enumerate(source.rows(), start=shard.first_row + 1):
            self.input_bytes = min(self.input_bytes + size, shard.input_bytes)
            self._count(size, blank=False)
            try:
                if isinstance(row, RowError):
                    raise row
                texts = self._texts(row, b"")
            except RowError as error:
                yield TextRow(number, None, (), size, str(error))
            else:
                yield TextRow(number, None, texts, size)

    def counts(self, bad_lines: int = 0) -> RowCounts:
        """Of what has been read so far; bad lines are counted by whoever skips them."""
        return RowCounts(
            self._lines, self._blank_lines, bad_lines, self._replaced_surrogates, self._text_bytes
        )

    def _count(self, size: int, blank: bool) -> None:
        self._lines += 1
        self._blank_lines += blank
        self._text_bytes += size

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
