"""What is wrong with an indexed file, each kind with a class of its own.

All are `ValueError`s that name the file, what was found in it and what was expected.
"""


class IndexedDatasetError(ValueError):
    """An indexed dataset that cannot be read or written as asked."""


class MagicError(IndexedDatasetError):
    """The `.idx` file does not begin like one."""


class VersionError(IndexedDatasetError):
    """The `.idx` file has a version that is not 1."""


class DTypeError(IndexedDatasetError):
    """A dtype that the format does not have, or one that does not fit the other files."""


class IndexSizeError(IndexedDatasetError):
    """The `.idx` file is shorter or longer than its counts imply."""


class DocumentIndexError(IndexedDatasetError):
    """The document list does not start at 0, is not ascending or does not end at the last."""


class SequenceLengthError(IndexedDatasetError):
    """A sequence has a negative length, or one too large for the format."""


class SequencePointerError(IndexedDatasetError):
    """Sequence pointers decrease, leave gaps, or run past the end of the `.bin` file."""


class TokenError(IndexedDatasetError):
    """A token that the dtype cannot hold, or that the vocabulary does not have."""


class MissingFileError(IndexedDatasetError, FileNotFoundError):
    """One or both files of a prefix are missing."""
