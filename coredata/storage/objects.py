"""Readers of files behind URLs."""

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from coredata.storage.files import read_bytes
from coredata.storage.reader import InMemoryReader


@final
class WholeObject(InMemoryReader):
    """A file behind a URL, fetched whole on first use and kept in memory."""

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None = None) -> None:
        super().__init__(path)
        self._storage_options = storage_options

    def _load(self) -> np.ndarray:
        return np.frombuffer(read_bytes(self._path, self._storage_options), np.uint8)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return WholeObject, (self._path, self._storage_options)
