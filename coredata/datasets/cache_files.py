"""The caches in a directory, found by the names of their files."""

import json
import os
import re
from dataclasses import dataclass
from typing import Any

from coredata.datasets.identity import description_hash

_NAME = re.compile(
    r"([0-9a-f]{32})-([^-]+)-(?:([^-]+)-)?(description\.txt|checksums\.json|arrays\.pack|[^-]+\.npy)"
)
SET_ASIDE = ".damaged"
"""What is appended to the names of the files of a damaged cache, which are kept."""
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}-[^-]+-.+\.[0-9a-f]{12}\.tmp")


@dataclass(frozen=True)
class CacheFiles:
    """The files of one cached dataset.

    Attributes:
        directory: where they are.
        digest: the hash in their names.
        class_name: the dataset's class.
        split_name: train, valid, test, or another; "" if it is not in the names.
        names: the last parts of their names, sorted.
    """

    directory: str
    digest: str
    class_name: str
    split_name: str
    names: tuple[str, ...]

    @property
    def key(self) -> str:
        """How the names of the files begin."""
        parts = (self.digest, self.class_name, self.split_name)
        return "-".join(part for part in parts if part)

    def path(self, name: str) -> str:
        """Where `name` is, such as "description.txt"."""
        return os.path.join(self.directory, f"{self.key}-{name}")

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays that are there."""
        return tuple(name.removesuffix(".npy") for name in self.names if name.endswith(".npy"))

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(os.stat(self.path(name)).st_size for name in self.names)

    def description(self) -> dict[str, Any]:
        """What identifies the dataset.

        Raises:
            ValueError: there is none (it is written last, so the cache is incomplete), it is not
                the one that the names are made from, or it is no JSON object.
        """
        path = self.path("description.txt")
        if "description.txt" not in self.names:
            raise ValueError(
                f"{path} is missing; it is written last, so this cache is incomplete: its build "
                "was interrupted, or is going on. It will be built again"
            )
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            text = file.read()
        if description_hash(text) != self.digest:
            raise ValueError(
                f"{path} has the MD5 {description_hash(text)}, but is named {self.digest}; it was "
                "changed, cut off or renamed. Delete it, and the cache is built again"
            )
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError(f"{path} holds {text[:40]!r}, expected a JSON object")
        return content


def find_caches(directory: str) -> list[CacheFiles]:
    """The caches whose files are in `directory`, sorted by class, split and hash."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for name in os.listdir(directory):
        match = _NAME.fullmatch(name)
        if match is not None:
            digest, class_name, split_name, rest = match.groups()
            found.setdefault((class_name, split_name or "", digest), []).append(rest)
    return [
        CacheFiles(directory, digest, class_name, split_name, tuple(sorted(names)))
        for (class_name, split_name, digest), names in sorted(found.items())
    ]


def unfinished_files(directory: str) -> list[str]:
    """Temporary files of caches in `directory`, of builds that go on or were killed."""
    return sorted(name for name in os.listdir(directory) if _UNFINISHED.fullmatch(name))


def files_set_aside(directory: str) -> list[str]:
    """Files of damaged caches in `directory` that were renamed, see `SET_ASIDE`."""
    found = []
    for name in os.listdir(directory):
        stem, mark, number = name.rpartition(SET_ASIDE)
        whole = number == "" or number.removeprefix("-").isdigit()
        if mark and whole and _NAME.fullmatch(stem):
            found.append(name)
    return sorted(found)
