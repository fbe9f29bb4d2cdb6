"""A small file in which workers note how far they are, and read whether to go on.

It is mapped by the parent and by every worker on this machine. There are no locks, so a worker
that is killed leaves nothing locked. A worker elsewhere does not find the file and does without.
"""

import contextlib
import os
import tempfile
from dataclasses import dataclass

import numpy as np

from coredata._typing import Int64

_COLUMNS = 6
# Worker's process id, whether it is at work, then the fields of `Totals`.
_WORKER, _RUNNING, _DOCUMENTS = range(3)


@dataclass(frozen=True)
class Totals:
    """Work done so far, in all shards together."""

    documents: int
    input_bytes: int
    text_bytes: int
    tokens: int


class Board:
    """One row of 64-bit numbers per shard, and one number above which shards are not needed."""

    def __init__(self, path: str, shards: int) -> None:
        self.path = path
        self._rows = np.memmap(path, dtype=np.int64, mode="r+", shape=(shards + 1, _COLUMNS))

    @classmethod
    def create(cls, shards: int) -> "Board":
        """A new board in the temporary directory; `remove` it when done."""
        descriptor, path = tempfile.mkstemp(prefix="coredata-preprocess-", suffix=".board")
        os.truncate(descriptor, 8 * _COLUMNS * (shards + 1))
        os.close(descriptor)
        board = cls(path, shards)
        board._rows[0, 0] = shards
        return board

    @classmethod
    def attach(cls, path: str, shards: int) -> "Board | None":
        """The board of the parent process; None where its file is not."""
        return cls(path, shards) if os.path.exists(path) else None

    def remove(self) -> None:
        """Delete the file, if nobody has cleaned it away."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def begin(self, shard: int) -> None:
        """Note that this process works on `shard`."""
        self._rows[shard + 1] = 0
        self._rows[shard + 1, : _RUNNING + 1] = os.getpid(), 1

    def note(self, shard: int, done: Totals) -> None:
        """Note how much of `shard` is done."""
        self._rows[shard + 1, _DOCUMENTS:] = (
            done.documents,
            done.input_bytes,
            done.text_bytes,
            done.tokens,
        )

    def end(self, shard: int) -> None:
        """Note that no process works on `shard` any more."""
        self._rows[shard + 1, _RUNNING] = 0

    def needed(self, shard: int) -> bool:
        """Whether the result of `shard` is still wanted."""
        return bool(shard <= self._rows[0, 0])

    def stop_after(self, shard: int) -> None:
        """Tell workers that shards above `shard` are not needed (-1: none is)."""
        self._rows[0, 0] = min(int(self._rows[0, 0]), shard)

    def running(self) -> dict[int, int]:
        """Shard -> process id, of shards that were begun and not ended."""
        running = np.flatnonzero(self._rows[1:, _RUNNING])
        return {int(shard): int(self._rows[shard + 1, _WORKER]) for shard in running}

    def totals(self) -> Totals:
        """Sums over all shards."""
        sums: Int64[np.ndarray, " columns"] = self._rows[1:].sum(axis=0)
        return Totals(*(int(value) for value in sums[_DOCUMENTS:]))
