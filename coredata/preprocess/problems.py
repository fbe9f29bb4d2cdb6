"""Bad lines: where they are, why, and the file that lists them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

from coredata.storage import PendingFile, begin_write


@dataclass(frozen=True)
class Problem:
    """One bad line.

    Attributes:
        file: path of the file.
        line: number of the line (of the row, in parquet) in the file, from 1.
        byte: offset of the line in the file (decompressed); None in parquet.
        reason: what is wrong.
        excerpt: the beginning of the line; empty in parquet.
    """

    file: str
    line: int
    byte: int | None
    reason: str
    excerpt: str

    def __str__(self) -> str:
        place = f"row {self.line}" if self.byte is None else f"line {self.line}, byte {self.byte}"
        return f"{self.file}, {place}: {self.reason}"


class ProblemLog:
    """A file of problems, one JSON object a line, that exists only if there are any.

    As a context manager it is published on a clean exit.
    """

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self.count = 0
        self.path = path
        self._options = storage_options
        self._pending: PendingFile | None = None

    def add(self, problem: Problem) -> None:
        """Write one more."""
        if self._pending is None:
            self._pending = begin_write(self.path, self._options)
        self._pending.file.write(json.dumps(asdict(problem)).encode() + b"\n")
        self.count += 1

    def publish(self) -> None:
        """Let the file appear as it is now, ahead of the end."""
        if self._pending is not None:
            self._pending.prepare()
            self._pending.publish()
            self._pending = None

    def __enter__(self) -> "ProblemLog":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pending is not None:
            self._pending.__exit__(exc_type, exc_value, traceback)
