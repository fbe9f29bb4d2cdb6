"""Readers of objects that are copied whole to a local disk, once for all processes of a host."""

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from coredata.storage.files import read_bytes
from coredata.storage.local_copies import local_copies
from coredata.storage.local_files import MappedFile
from coredata.storage.paths import local_path
from coredata.storage.reader import InMemoryReader

_OF_ONE_PROCESS = "memory://"


@final
class CopiedObject(InMemoryReader):
    """A file behind a URL, copied to a local disk on first use if it is not there, then mapped.

    Each time it is opened, storage is asked whether the copy is still of the present version.
    What is in the memory of this process already (`memory://`) is not copied to disk.

    Args:
        path: any URL that fsspec knows.
        storage_options: for fsspec, and under "coredata" `ReadOptions`.
        checksum: CRC-32 that the bytes must have, if it is known.
    """

    def __init__(
        self,
        path: str,
        storage_options: Mapping[str, Any] | None = None,
        checksum: int | None = None,
    ) -> None:
        super().__init__(path)
        self._storage_options = storage_options
        self._checksum = checksum

    def _load(self) -> np.ndarray:
        if self._path.startswith(_OF_ONE_PROCESS):
            return np.frombuffer(read_bytes(self._path, self._storage_options), np.uint8)
        copies = local_copies(self._storage_options)
        return copies.open(self._path, self._storage_options, self._checksum)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return CopiedObject, (self._path, self._storage_options, self._checksum)


def open_copied(
    path: str, storage_options: Mapping[str, Any] | None = None, checksum: int | None = None
) -> InMemoryReader:
    """The reader for a file that is needed whole: mapped, from a local copy if it is a URL.

    The file is opened on first use, not here.
    """
    if local_path(path) is None:
        return CopiedObject(path, storage_options, checksum)
    return MappedFile(path)
