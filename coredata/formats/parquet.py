"""Rows of parquet files, some columns and some row groups at a time."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coredata.formats.rows import NOT_DAMAGE, DamagedFileError, RowError
from coredata.storage import open_binary

PARQUET_NAMES = (".parquet", ".pq")

_BATCH_ROWS = 256
_BUFFER = 1 << 20


@dataclass(frozen=True)
class RowGroup:
    """Size of one row group.

    Attributes:
        rows: number of rows.
        stored_bytes: bytes in the file of the columns asked for.
    """

    rows: int
    stored_bytes: int


@dataclass(frozen=True)
class ParquetRows:
    """Rows of a parquet file as dicts of the columns asked for.

    Attributes:
        path: a local path or any URL.
        columns: names of the columns to read; each holds strings or lists of strings.
        first_group: first row group to read.
        end_group: row group after the last one to read; None for all.
        storage_options: for the URL's file system.
    """

    path: str
    columns: Sequence[str]
    first_group: int = 0
    end_group: int | None = None
    storage_options: Mapping[str, Any] | None = None

    def row_groups(self) -> list[RowGroup]:
        """Sizes of all row groups of the file, whatever part of it is asked for.

        Raises:
            DamagedFileError: this is no intact parquet file.
            ValueError: a column is missing or holds no text.
        """
        with self._open() as file:
            metadata = file.metadata
            wanted = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
            leaves = [i for path, i in wanted.items() if path.split(".")[0] in self.columns]
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            return [
                RowGroup(group.num_rows, sum(group.column(i).total_compressed_size for i in leaves))
                for group in groups
            ]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, in order.

        Raises:
            RowError: a row's text is not UTF-8.
        """
        for row, _ in self.rows():
            if isinstance(row, RowError):
                raise row
            yield row

    def rows(self) -> Iterator[tuple[dict[str, Any] | RowError, int]]:
        """Rows, or what is wrong with one, each with its size in memory in bytes (an average).

        Raises:
            DamagedFileError: the file is broken.
            ValueError: a column is missing or holds no text.
        """
        with self._open() as file:
            end = file.metadata.num_row_groups if self.end_group is None else self.end_group
            for group in range(self.first_group, end):
                for batch in self._batches(file, group):
                    size = batch.nbytes // max(batch.num_rows, 1)
                    values = [_python_values(batch.column(name)) for name in self.columns]
                    for row in zip(*values, strict=True):
                        bad = [value for value in row if isinstance(value, RowError)]
                        yield bad[0] if bad else dict(zip(self.columns, row, strict=True)), size

    def _batches(self, file: Any, group: int) -> Iterator[Any]:
        with damage_told(self.path, group):
            batches = file.iter_batches(
                batch_size=_BATCH_ROWS,
                row_groups=[group],
                columns=list(self.columns),
                use_threads=False,
            )
        while True:
            with damage_told(self.path, group):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        with (
            open_binary(self.path, self.storage_options) as stream,
            open_parquet(self.path, stream) as file,
        ):
            self._check_columns(file.schema_arrow)
            yield file

    def _check_columns(self, schema: Any) -> None:
        for name in self.columns:
            if name not in schema.names:
                raise ValueError(
                    f'{self.path} has no column "{name}"; it has '
                    + ", ".join(f'"{column}"' for column in schema.names)
                )
            if not _holds_text(schema.field(name).type):
                raise ValueError(
                    f'{self.path}: column "{name}" is of type {schema.field(name).type}; '
                    "strings or lists of strings are expected"
                )


def open_parquet(path: str, stream: Any) -> Any:
    """The `pyarrow.parquet.ParquetFile` of an open file; checksums of its pages are checked.

    Raises:
        ImportError: the package pyarrow is missing or broken.
        DamagedFileError: this is no intact parquet file.
    """
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"reading {path} needs the package pyarrow; pip install 'coredata[parquet]'"
        ) from error
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs the package pyarrow, which is installed, but cannot be imported "
            f"({error}); pip install --force-reinstall pyarrow"
        ) from error
    with damage_told(path):
        return pyarrow.parquet.ParquetFile(
            stream, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
        )


@contextlib.contextmanager
def damage_told(path: str, group: int | None = None) -> Iterator[None]:
    """Tell errors of pyarrow, met in the file or in one row group, as damage to the file.

    Raises:
        DamagedFileError: the file is broken.
    """
    import pyarrow

    try:
        yield
    except NOT_DAMAGE:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        if group is not None:
            raise DamagedFileError(
                f"{path}, row group {group} (from 0): this is no intact parquet file ({error}). "
                "Fetch or write it again."
            ) from error
        raise DamagedFileError(
            f"{path}: this is no intact parquet file ({error}). Fetch or write it again, or "
            "name it as what it is (.jsonl for JSON lines)."
        ) from error


def _holds_text(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return _holds_text(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _holds_text(kind.value_type) and not types.is_nested(kind.value_type)
    return types.is_null(kind) or str(kind) in ("string", "large_string", "string_view")


def _python_values(column: Any) -> list[Any]:
    """Values of an Arrow array; a `RowError` where a value is not UTF-8."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_python_value(scalar) for scalar in column]


def _python_value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return RowError(
            f"not UTF-8: byte 0x{error.object[error.start]:02x}, {error.start} bytes into the "
            f"text ({error.reason})"
        )
