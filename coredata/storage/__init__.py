"""Where bytes are and how they come: local files mapped or read by position, and URLs."""

from coredata.storage.atomic import PendingFile, atomic_write, begin_write, remove
from coredata.storage.counters import Counters
from coredata.storage.files import open_binary, open_text_stream, read_bytes
from coredata.storage.local_files import MappedFile, PositionalFile
from coredata.storage.objects import WholeObject
from coredata.storage.options import ReadOptions, read_options
from coredata.storage.paths import exists, expand, is_directory, is_url, join, local_path, size
from coredata.storage.ranged import RangedObject
from coredata.storage.reader import ByteReader
from coredata.storage.readers import open_reader
from coredata.storage.retrying import RetryPolicy, ShortBodyError, StorageError

__all__ = [
    "ByteReader",
    "Counters",
    "MappedFile",
    "PendingFile",
    "PositionalFile",
    "RangedObject",
    "ReadOptions",
    "RetryPolicy",
    "ShortBodyError",
    "StorageError",
    "WholeObject",
    "atomic_write",
    "begin_write",
    "exists",
    "expand",
    "is_directory",
    "is_url",
    "join",
    "local_path",
    "open_binary",
    "open_reader",
    "open_text_stream",
    "read_bytes",
    "read_options",
    "remove",
    "size",
]
