"""Index arrays kept on disk: written whole or not at all, checked when they come back.

The files are the reference's, `{hash}-{class}-{split}-{name}`: a description, written last, and
one `.npy` file for each array. Beside them lie `checksums.json` and, of small arrays,
`arrays.pack`, which the reference does not look at. Files appear by rename, so that processes may
build the same cache at once.
"""

import io
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coredata.datasets.checksum import checksum
from coredata.datasets.identity import description_hash
from coredata.datasets.index_pack import packed, unpacked
from coredata.datasets.npy import DamagedFileError, open_bytes, open_npy
from coredata.storage import atomic_write, exists, join, local_path, read_bytes

Arrays = dict[str, np.ndarray]

Check = Callable[[Arrays, bool], None]
"""Raises `DamagedFileError` if arrays contradict what is known about them. The second argument
tells whether their bytes are known to be those that were written."""


class IndexCacheError(OSError):
    """An index cache that cannot be read or written. Its text names the directory."""


class IndexCacheWarning(UserWarning):
    """An index cache that was damaged and is built again."""


@dataclass(frozen=True)
class IndexCache:
    """The cached arrays of one dataset.

    Attributes:
        directory: where the files are, a path or URL; made on the first `store`.
        description: what identifies the dataset (`identity.describe`).
        class_name: the dataset's class.
        split_name: train, valid or test; "" for classes whose files the reference names without.
        storage_options: for a URL.
        digest: `description_hash` of the description, where it is known already.
    """

    directory: str
    description: str
    class_name: str
    split_name: str
    storage_options: Mapping[str, Any] | None = None
    digest: str | None = None

    _stem: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digest = self.digest or description_hash(self.description)
        parts = (digest, self.class_name, self.split_name)
        # A cached property would take a lock, for each of thousands of caches at a start.
        stem = join(self.directory, "".join(f"{part}-" for part in parts if part))
        object.__setattr__(self, "_stem", stem)

    def path(self, name: str) -> str:
        """Where `name` is kept: an array's name, with ".npy", or "description.txt"."""
        return self._stem + name

    def complete(self) -> bool:
        """Whether the cache was written to the end."""
        return exists(self.path("description.txt"), self.storage_options)

    def load(self, names: Sequence[str], check: Check | None = None) -> Arrays | None:
        """The arrays, checked; None if they have to be built.

        A file is checked for its header and length, and against its checksum if we wrote it (one
        pass over the data, at the speed of memory); small ones that nobody has touched since are
        taken from a copy of them all (see `index_pack`). Then `check` may object.

        Warns:
            IndexCacheWarning: the cache is there but damaged.

        Raises:
            IndexCacheError: files that may not be read.
        """
        if not self.complete():
            return None
        try:
            arrays, trusted = self._unpacked(names), True
            if arrays is None:
                recorded = self._recorded()
                arrays, trusted = self._open(names), recorded is not None
                if recorded is None:
                    self._check_description()
                else:
                    for name, array in arrays.items():
                        self._check_recorded(name, array, recorded.get(name))
            if check is not None:
                check(arrays, trusted)
        except (DamagedFileError, FileNotFoundError) as error:
            warnings.warn(
                f"the index cache in {self.directory} is damaged and is built again: {error}",
                IndexCacheWarning,
                stacklevel=2,
            )
            return None
        except OSError as error:
            raise self._error("read", error) from error
        return arrays

    def load_unchecked(self, names: Sequence[str]) -> Arrays:
        """The arrays of a cache that is known to be complete; only headers and lengths are checked.

        Raises:
            FileNotFoundError: a file is missing.
            DamagedFileError: a file that is not an array of the size that its header implies.
        """
        try:
            return self._open(names)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{error.filename or error}: no such index array. fast_cache_load and workers "
                f"expect a finished cache in {self.directory}; build the dataset once without "
                "fast_cache_load"
            ) from error

    def store(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Write the arrays, their checksums, a copy of small ones, and last the description.

        Raises:
            IndexCacheError: the directory cannot be written, or is full.
        """
        try:
            local = local_path(self.directory)
            if local is not None:
                os.makedirs(local, exist_ok=True)
            recorded: dict[str, Any] = {}
            for name, array in arrays.items():
                array = np.ascontiguousarray(array)
                self._write(f"{name}.npy", _npy_header(array), array.reshape(-1).view(np.uint8))
                recorded[name] = _record(array)
            self._write("checksums.json", json.dumps(recorded, indent=1).encode())
            pack = None if local is None else packed(arrays, self._stem)
            if pack is not None:
                self._write("arrays.pack", pack)
            self._write("description.txt", self.description.encode("utf-8"))
        except OSError as error:
            raise self._error("write", error) from error

    def _write(self, name: str, *parts: Any) -> None:
        with atomic_write(self.path(name), self.storage_options) as file:
            for part in parts:
                file.write(part)

    def _open(self, names: Sequence[str]) -> Arrays:
        return {name: open_npy(self.path(f"{name}.npy"), self.storage_options) for name in names}

    def _unpacked(self, names: Sequence[str]) -> Arrays | None:
        """Small arrays, from the copy of them all; None where there is none that counts."""
        if local_path(self.directory) is None:
            return None
        try:
            pack = open_bytes(self.path("arrays.pack"))
        except FileNotFoundError:
            return None
        return unpacked(bytes(pack), names, self._stem)

    def _recorded(self) -> dict[str, Any] | None:
        path = self.path("checksums.json")
        try:
            recorded = json.loads(str(open_bytes(path, self.storage_options), "utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DamagedFileError(f"{path} is not JSON: {error}") from error
        if not isinstance(recorded, dict):
            raise DamagedFileError(f"{path} is not a JSON object")
        return recorded

    def _check_recorded(self, name: str, array: np.ndarray, recorded: Any) -> None:
        found = _record(array)
        if found != recorded:
            raise DamagedFileError(
                f"{self.path(f'{name}.npy')} has {found}; {recorded} was written"
            )

    def _check_description(self) -> None:
        path = self.path("description.txt")
        if read_bytes(path, self.storage_options) != self.description.encode("utf-8"):
            raise DamagedFileError(f"{path} describes another dataset")

    def _error(self, verb: str, error: OSError) -> IndexCacheError:
        if isinstance(error, FileExistsError | NotADirectoryError):
            return IndexCacheError(
                error.errno,
                f"cannot {verb} the index cache in {self.directory}: it is, or is below, a file, "
                "not a directory. Set path_to_cache to a directory, which need not exist yet, "
                "or to None to build indices in memory",
            )
        return IndexCacheError(
            error.errno,
            f"cannot {verb} the index cache in {self.directory}: {error.strerror or error}. Make "
            "room or change its permissions, or set path_to_cache to another directory, or to "
            "None to build indices in memory",
        )


def _npy_header(array: np.ndarray) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.getvalue()


def _record(array: np.ndarray) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape), "checksum": checksum(array)}
