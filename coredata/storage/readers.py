"""Which reader suits a path."""

from collections.abc import Mapping
from typing import Any

from coredata.storage.local_files import MappedFile, PositionalFile
from coredata.storage.paths import local_path
from coredata.storage.ranged import RangedObject
from coredata.storage.reader import ByteReader


def open_reader(
    path: str, *, mmap: bool = True, storage_options: Mapping[str, Any] | None = None
) -> ByteReader:
    """The reader for `path`: mapped or positional for a local file, by ranges for a URL.

    The file is opened on first use, not here.
    """
    if local_path(path) is None:
        return RangedObject(path, storage_options)
    return MappedFile(path) if mmap else PositionalFile(path)
