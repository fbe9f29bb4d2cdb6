"""Cutting the input into shards, each a task by itself.

A plan is a value: it depends on the sizes of the files and nothing else, and is kept on disk so
that a later run goes on with the same shards.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coredata.formats.parquet import PARQUET_NAMES, ParquetRows, RowGroup
from coredata.formats.rows_streams import is_compressed
from coredata.preprocess.checks import check_regular
from coredata.preprocess.errors import PreprocessError
from coredata.storage import expand, local_path
from coredata.storage.remote import filesystem

_SMALLEST_SHARD = 1 << 20
_LARGEST_SHARD = 64 << 20
_SHARDS_PER_WORKER = 4
_STAMPS = ("mtime", "ETag", "etag", "LastModified", "last_modified", "updated", "md5", "created")


@dataclass(frozen=True)
class InputFile:
    """One file of the input.

    Attributes:
        path: local path or URL.
        size: bytes.
        stamp: when it was written, as far as the file system tells; a changed file has another.
        row_groups: of a parquet file; empty for others.
    """

    path: str
    size: int
    stamp: str
    row_groups: tuple[RowGroup, ...] = ()


@dataclass(frozen=True)
class Shard:
    """One stretch of one file.

    Attributes:
        index: position in the plan, and in the output.
        file: number of the file in the input.
        path: of the file.
        start: first byte of a text file, or first row group of a parquet file.
        end: byte, or row group, after the last; None where the whole file is one shard.
        first_row: rows of the parquet file before this shard; 0 for others.
        input_bytes: bytes of the file that it stands for.
    """

    index: int
    file: int
    path: str
    start: int
    end: int | None
    first_row: int
    input_bytes: int

    @property
    def is_parquet(self) -> bool:
        """Whether the file is read as parquet."""
        return is_parquet(self.path)

    def describe(self) -> str:
        """The shard in words: "shard 3 (corpus.jsonl, bytes 200 to 300)"."""
        if self.end is None:
            return f"shard {self.index} ({self.path}, from byte 0)"
        unit = "row groups" if self.is_parquet else "bytes"
        return f"shard {self.index} ({self.path}, {unit} {self.start} to {self.end})"


def is_parquet(path: str) -> bool:
    """Whether `path` is named as a parquet file."""
    return path.endswith(PARQUET_NAMES)


def inspect_inputs(
    patterns: str | Sequence[str],
    json_keys: Sequence[str],
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[InputFile, ...]:
    """The files of the input in the order in which their documents will come out.

    Raises:
        FileNotFoundError: a path or pattern that names no file.
        PreprocessError: a file named more than once, or something that is no regular file.
        ValueError: a parquet file that is broken or lacks a column.
    """
    paths = expand(patterns, storage_options)
    twice = [path for path, times in Counter(paths).items() if times > 1]
    if twice:
        raise PreprocessError(
            f"{twice[0]} is named {Counter(paths)[twice[0]]} times by the input; its documents "
            "would come out as often. Name each file once (or link it under another name)."
        )
    return tuple(inspect_input(path, json_keys, storage_options) for path in paths)


def inspect_input(
    path: str, json_keys: Sequence[str], storage_options: Mapping[str, Any] | None = None
) -> InputFile:
    """What the plan needs to know about one file."""
    check_regular(path)
    size, stamp = size_and_stamp(path, storage_options)
    groups: Sequence[RowGroup] = ()
    if is_parquet(path):
        groups = ParquetRows(path, json_keys, storage_options=storage_options).row_groups()
    return InputFile(path, size, stamp, tuple(groups))


def size_and_stamp(path: str, storage_options: Mapping[str, Any] | None = None) -> tuple[int, str]:
    """Size in bytes, and a text that changes when the file does."""
    local = local_path(path)
    if local is not None:
        status = os.stat(local)
        return status.st_size, str(status.st_mtime_ns)
    remote, key = filesystem(path, storage_options)
    info = remote.info(key)
    stamps = [f"{name}={info[name]}" for name in _STAMPS if info.get(name) is not None]
    return int(info["size"]), " ".join(stamps)


def default_shard_bytes(files: Sequence[InputFile], workers: int) -> int:
    """Shards small enough that all workers stay busy to the end, and that little work is lost."""
    total = sum(file.size for file in files)
    wanted = -(-total // (workers * _SHARDS_PER_WORKER))
    return min(max(wanted, _SMALLEST_SHARD), _LARGEST_SHARD)


def plan_shards(files: Sequence[InputFile], shard_bytes: int) -> tuple[Shard, ...]:
    """Stretches of about `shard_bytes`, in input order; a compressed file is one whole."""
    shards: list[Shard] = []
    for number, file in enumerate(files):
        if is_parquet(file.path):
            stretches = _group_stretches(file.row_groups, shard_bytes)
        elif is_compressed(file.path):
            stretches = [(0, None, 0, file.size)]  # of 0 bytes too: whoever reads it tells
        else:
            stretches = [
                (start, end, 0, end - start)
                for start in range(0, file.size, shard_bytes)
                for end in [min(start + shard_bytes, file.size)]
            ]
        for stretch in stretches:
            shards.append(Shard(len(shards), number, file.path, *stretch))
    return tuple(shards)


def _group_stretches(
    groups: Sequence[RowGroup], shard_bytes: int
) -> list[tuple[int, int | None, int, int]]:
    stretches: list[tuple[int, int | None, int, int]] = []
    start = rows_before = rows = size = 0
    for position, group in enumerate(groups):
        rows += group.rows
        size += group.stored_bytes
        if size >= shard_bytes or position == len(groups) - 1:
            stretches.append((start, position + 1, rows_before, size))
            start, rows_before, rows, size = position + 1, rows_before + rows, 0, 0
    return stretches
