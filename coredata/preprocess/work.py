"""The directory beside the output in which a run keeps what it has finished.

Each finished shard leaves its part files and, written last, a small JSON file of its counts. A
later run of the same work (same input, same settings) takes them over; any difference and they
are thrown away. When the output is complete the directory goes.

Nobody waits for part files to be on the disk, where most of them never need to go. They outlive a
run that is killed; what a crash of the machine may have spoilt does not have the checksum that the
JSON file tells, and is made again.
"""

import contextlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coredata.formats import get_bin_path, get_idx_path
from coredata.preprocess.board import Totals
from coredata.preprocess.plan import Shard
from coredata.preprocess.problems import Problem
from coredata.preprocess.report import KeyCounts, RowCounts
from coredata.preprocess.work_lock import LOCK, hold_directory, saying_where
from coredata.storage import atomic_write, exists, join, local_path, read_bytes, remove, size

_PLAN = "plan.json"
_JOINED = "joined.json"
_PIECE = 1 << 20


@dataclass(frozen=True)
class ShardResult:
    """What a worker hands back.

    Attributes:
        shard: its index.
        complete: False when it stopped because it alone has more bad lines than are allowed.
        rows: what it read.
        keys: key -> what it wrote.
    """

    shard: int
    complete: bool
    rows: RowCounts
    keys: Mapping[str, KeyCounts]

    def progress(self, input_bytes: int) -> Totals:
        """What the board shows for it, given how much of the file has been read."""
        return Totals(
            documents=self.rows.lines - self.rows.blank_lines,
            input_bytes=input_bytes,
            text_bytes=self.rows.text_bytes,
            tokens=sum(counts.tokens for counts in self.keys.values()),
        )


@dataclass(frozen=True)
class Joined:
    """How far part files have been put together.

    Attributes:
        shards: how many, from the first on.
        sizes: for each key, bytes of their tokens.
    """

    shards: int
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class OpenedWork:
    """What there is to do.

    Attributes:
        shards: to work on.
        continues: whether they are those of an earlier run, some of which may be finished.
        changed: what about the input or settings is no longer as it was, so that the work of an
            earlier run was thrown away; empty if there was none.
    """

    shards: tuple[Shard, ...]
    continues: bool
    changed: tuple[str, ...]


@dataclass(frozen=True)
class WorkDirectory:
    """Paths and contents of the directory."""

    path: str
    storage_options: Mapping[str, Any] | None = None

    def part_prefix(self, shard: int, key_number: int) -> str:
        """Prefix of the part files of a shard for one key."""
        return join(self.path, f"{shard:06d}_{key_number}")

    def problems_path(self, shard: int) -> str:
        """File that lists the bad lines of a shard, if it has any."""
        return join(self.path, f"{shard:06d}_problems.jsonl")

    def result_path(self, shard: int) -> str:
        """File that says that a shard is finished."""
        return join(self.path, f"{shard:06d}.json")

    def joined_path(self, key_number: int) -> str:
        """File in which the tokens of a key are put together, if the directory is local."""
        return os.path.join(local_path(self.path) or "", f"joined_{key_number}.bin")

    def joined(self, keys: int) -> Joined:
        """How far a run before is known to have put part files together, as the files are now."""
        nothing = Joined(0, (0,) * keys)
        saved = self._read_json(join(self.path, _JOINED))
        if saved is None or len(saved["sizes"]) != keys:
            return nothing
        try:
            there = [os.stat(self.joined_path(key_number)).st_size for key_number in range(keys)]
        except FileNotFoundError:
            return nothing
        if any(size < noted for size, noted in zip(there, saved["sizes"], strict=True)):
            return nothing
        return Joined(saved["shards"], tuple(saved["sizes"]))

    def note_joined(self, joined: Joined) -> None:
        """Remember how far they are; so much is on the disk."""
        self._write_json(join(self.path, _JOINED), asdict(joined))

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Make the directory, if it is local, and keep other processes out of it.

        Raises:
            PreprocessError: another process works in it.
            OSError: it cannot be made or written; of the kind that the system gave.
        """
        return hold_directory(self.path)

    def open(self, identity: Mapping[str, Any], fresh: Sequence[Shard]) -> OpenedWork:
        """Take up the work of an earlier run with the same identity, or begin anew.

        Args:
            identity: JSON values that decide every byte of the parts.
            fresh: the shards to begin anew with.

        Raises:
            OSError: the directory cannot be made or written; of the kind that the system gave.
        """
        changed: list[str] = []
        earlier = self._read_json(join(self.path, _PLAN))
        if earlier is not None:
            shards = tuple(Shard(**shard) for shard in earlier["shards"])
            was, now = earlier["identity"], json.loads(json.dumps(identity))
            changed = [name for name in now if was.get(name) != now[name]]
            if not changed:
                return OpenedWork(shards, True, ())
            with saying_where(self.path):
                self._clear(shards, len(was["json_keys"]))
        plan = {"identity": identity, "shards": [asdict(shard) for shard in fresh]}
        with saying_where(self.path):
            if earlier is None:
                self._clear((), 0)
            self._write_json(join(self.path, _PLAN), plan)
        return OpenedWork(tuple(fresh), False, tuple(changed))

    def finished(
        self, shard: int, keys: Sequence[str], joined_shards: int = 0
    ) -> ShardResult | None:
        """The result of a shard that an earlier run finished and whose files are all there.

        The tokens of the first `joined_shards` are not read: they are needed no more.
        """
        saved = self._read_json(self.result_path(shard))
        if saved is None or not self._are_there(shard, saved["parts"], shard < joined_shards):
            return None
        if saved["rows"]["bad_lines"] and not exists(
            self.problems_path(shard), self.storage_options
        ):
            return None
        counts = {key: KeyCounts(**saved["keys"][key]) for key in keys}
        return ShardResult(shard, True, RowCounts(**saved["rows"]), counts)

    def save(self, result: ShardResult) -> None:
        """Mark a shard as finished; its part files are in place."""
        saved = {
            "rows": asdict(result.rows),
            "keys": {key: asdict(counts) for key, counts in result.keys.items()},
            "parts": [
                self._size_and_checksum(path)
                for path in self._part_paths(result.shard, len(result.keys))
            ],
        }
        self._write_json(self.result_path(result.shard), saved, durable=False)

    def problems(self, shard: int) -> list[Problem]:
        """The bad lines that a shard noted."""
        text = read_bytes(self.problems_path(shard), self.storage_options)
        return [Problem(**json.loads(line)) for line in text.splitlines()]

    def remove(self, shards: Sequence[Shard], keys: int) -> None:
        """Delete everything that a run left; it holds the directory."""
        self._clear(shards, keys)
        local = local_path(self.path)
        if local is not None:
            os.unlink(os.path.join(local, LOCK))
            with contextlib.suppress(OSError):  # another run has begun here
                os.rmdir(local)

    def _clear(self, shards: Sequence[Shard], keys: int) -> None:
        """Delete what is in the directory, but for the lock."""
        local = local_path(self.path)
        if local is not None:
            for name in os.listdir(local):
                if name != LOCK:
                    os.unlink(os.path.join(local, name))
            return
        for shard in shards:
            for key_number in range(keys):
                prefix = self.part_prefix(shard.index, key_number)
                remove(get_bin_path(prefix), self.storage_options)
                remove(get_idx_path(prefix), self.storage_options)
            remove(self.problems_path(shard.index), self.storage_options)
            remove(self.result_path(shard.index), self.storage_options)
        remove(join(self.path, _PLAN), self.storage_options)

    def _part_paths(self, shard: int, keys: int) -> list[str]:
        prefixes = [self.part_prefix(shard, key_number) for key_number in range(keys)]
        return [of(prefix) for prefix in prefixes for of in (get_bin_path, get_idx_path)]

    def _are_there(self, shard: int, parts: Sequence[list[int]], joined: bool) -> bool:
        """Whether the part files are as they were written; of tokens that are joined, the size."""
        paths = self._part_paths(shard, len(parts) // 2)
        try:
            for path, noted in zip(paths, parts, strict=True):
                if joined and path.endswith(".bin"):
                    found, noted = [size(path, self.storage_options)], noted[:1]
                else:
                    found = self._size_and_checksum(path)
                if found != noted:
                    return False
        except FileNotFoundError:
            return False
        return True

    def _size_and_checksum(self, path: str) -> list[int]:
        """Size, and the CRC-32 of a local file."""
        local = local_path(path)
        if local is None:  # an object is complete once it is there
            return [size(path, self.storage_options)]
        length = checksum = 0
        with open(local, "rb", buffering=0) as file:
            while piece := file.read(_PIECE):
                length += len(piece)
                checksum = zlib.crc32(piece, checksum)
        return [length, checksum]

    def _read_json(self, path: str) -> Any:
        """What was written; None if it is not there, or was spoilt by a crash of the machine."""
        if not exists(path, self.storage_options):
            return None
        try:
            return json.loads(read_bytes(path, self.storage_options))
        except ValueError:
            return None

    def _write_json(self, path: str, value: Any, durable: bool = True) -> None:
        with atomic_write(path, self.storage_options, durable=durable) as file:
            file.write(json.dumps(value, indent=1).encode())
