"""Where bytes are and how they come: local files mapped or read by position, and URLs."""

from coredata.storage.atomic import PendingFile, atomic_write, begin_write, remove
from coredata.storage.block_checksums import (
    BLOCK,
    BlockChecksums,
    ChecksumError,
    ChecksumFileError,
    GrowingChecksums,
)
from coredata.storage.checksum_files import checksum_path, open_checksums
from coredata.storage.copied_object import CopiedObject, open_copied
from coredata.storage.counters import Counters
from coredata.storage.faults import ObjectChangedError, ShortBodyError, StorageError
from coredata.storage.files import open_binary, open_text_stream, read_bytes
from coredata.storage.local_files import MappedFile, PositionalFile
from coredata.storage.objects import WholeObject
from coredata.storage.options import ReadOptions, read_options, with_read_options
from coredata.storage.paths import exists, expand, is_directory, is_url, join, local_path, size
from coredata.storage.ranged import RangedObject
from coredata.storage.reader import ByteReader
from coredata.storage.readers import open_reader
from coredata.storage.service import looked_up

__all__ = [
    "BLOCK",
    "BlockChecksums",
    "ByteReader",
    "ChecksumError",
    "ChecksumFileError",
    "CopiedObject",
    "Counters",
    "GrowingChecksums",
    "MappedFile",
    "ObjectChangedError",
    "PendingFile",
    "PositionalFile",
    "RangedObject",
    "ReadOptions",
    "ShortBodyError",
    "StorageError",
    "WholeObject",
    "atomic_write",
    "begin_write",
    "checksum_path",
    "exists",
    "expand",
    "is_directory",
    "is_url",
    "join",
    "local_path",
    "looked_up",
    "open_binary",
    "open_checksums",
    "open_copied",
    "open_reader",
    "open_text_stream",
    "read_bytes",
    "read_options",
    "remove",
    "size",
    "with_read_options",
]
