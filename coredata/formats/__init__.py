"""What is in a file: token files (`.bin` with `.idx`), and rows of text and conversations.

Token files are read, written, merged and verified; rows (JSON lines, parquet) are read by number.
"""

from coredata.formats.checksums import verify_block_checksums, write_block_checksums
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
from coredata.formats.opening import open_many, prepared
from coredata.formats.pair import has_modes
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.formats.row_source import JoinedRows, RowSource
from coredata.formats.row_source_lines import JsonLinesSource
from coredata.formats.row_source_open import open_rows
from coredata.formats.row_source_parquet import ParquetSource
from coredata.formats.rows import RowError
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
    "JoinedRows",
    "JsonLinesSource",
    "MagicError",
    "MissingFileError",
    "ParquetSource",
    "RowError",
    "RowSource",
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
    "open_many",
    "open_rows",
    "prepared",
    "sequence_pointers",
    "verify_block_checksums",
    "verify_indexed",
    "write_block_checksums",
    "write_index",
]
