"""Which caches were there and which were built, told by their files alone."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coredata.storage import expand, join, local_path, read_bytes, size

_NAME = re.compile(r"([0-9a-f]{32})-.+")
_DESCRIPTION = "description.txt"


@dataclass(frozen=True)
class CacheState:
    """A look at a cache directory.

    Attributes:
        directory: path or URL.
        files: hash of a cache -> name of a file of it -> (bytes, time of its last change). Of a
            directory behind a URL the time is 0.
    """

    directory: str
    files: Mapping[str, Mapping[str, tuple[int, int]]]

    def complete(self, digest: str) -> bool:
        """Whether the cache with this hash has its description, which is written last."""
        return any(name.endswith(_DESCRIPTION) for name in self.files.get(digest, ()))

    def bytes(self, digest: str) -> int:
        """Size of its files."""
        return sum(length for length, _ in self.files.get(digest, {}).values())

    def kept(self, later: "CacheState", digest: str) -> bool:
        """Whether it was complete and is, in `later`, as it was."""
        return self.complete(digest) and self.files[digest] == later.files.get(digest)


def look_at(directory: str) -> CacheState:
    """The caches in a directory, which need not exist."""
    files: dict[str, dict[str, tuple[int, int]]] = {}
    for name, length, changed in _listing(directory):
        match = _NAME.fullmatch(name)
        if match is not None:
            files.setdefault(match.group(1), {})[name] = (length, changed)
    return CacheState(directory, files)


def _listing(directory: str) -> Iterator[tuple[str, int, int]]:
    local = local_path(directory)
    if local is None:
        try:
            paths = expand(join(directory, "*"))
        except FileNotFoundError:
            return
        for path in paths:
            yield path.rpartition("/")[2], size(path), 0
        return
    if not os.path.isdir(local):
        return
    with os.scandir(local) as entries:
        for entry in entries:
            if entry.is_file():
                found = entry.stat()
                yield entry.name, found.st_size, found.st_mtime_ns


def row_indices(state: CacheState, files: Iterable[str]) -> dict[str, str]:
    """Of caches of rows: which file (absolute path) -> the hash of its index.

    Of a file that has changed there may be several; the newest counts.
    """
    wanted = set(files)
    found: dict[str, tuple[int, str]] = {}
    for digest, names in state.files.items():
        for name, (_, changed) in names.items():
            if "-LineIndex-" not in name or not name.endswith(_DESCRIPTION):
                continue
            about: Any = json.loads(read_bytes(join(state.directory, name)))
            path = about.get("path")
            if path in wanted and found.get(path, (-1, ""))[0] <= changed:
                found[path] = (changed, digest)
    return {path: digest for path, (_, digest) in found.items()}
