"""What is in a file: token files (`.bin` with `.idx`), read, written, merged and verified."""

from coredata.formats.dtypes import DType, best_dtype
from coredata.formats.errors import (
    DocumentIndexError,
    DTypeError,
    IndexedDatasetError,
    IndexSizeError,
    MagicError,
    MissingFileError,
    SequenceLengthError,
    SequencePointerError,
    TokenError,
    VersionError,
)
from coredata.formats.indexed import IndexedDataset
from coredata.formats.layout import sequence_pointers, write_index
from coredata.formats.merging import merge
from coredata.formats.pair import has_modes
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.formats.verify import Verified, verify_indexed
from coredata.formats.writer import IndexedDatasetBuilder

__all__ = [
    "DType",
    "DTypeError",
    "DocumentIndexError",
    "IndexSizeError",
    "IndexedDataset",
    "IndexedDatasetBuilder",
    "IndexedDatasetError",
    "MagicError",
    "MissingFileError",
    "SequenceLengthError",
    "SequencePointerError",
    "TokenError",
    "Verified",
    "VersionError",
    "best_dtype",
    "get_bin_path",
    "get_idx_path",
    "has_modes",
    "merge",
    "sequence_pointers",
    "verify_indexed",
    "write_index",
]
