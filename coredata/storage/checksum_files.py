"""Files of checksums beside the files that they belong to."""

from collections.abc import Mapping
from typing import Any

from coredata.storage.block_checksums import (
    BLOCK,
    BlockChecksums,
    ChecksumFileError,
    read_checksums,
)
from coredata.storage.copied_object import open_copied

_BIN = ".bin"


def checksum_path(path: str) -> str:
    """Where the checksums of `PREFIX.bin` are: `PREFIX.crc`."""
    return path.removesuffix(_BIN) + ".crc"


def open_checksums(
    path: str,
    size: int,
    storage_options: Mapping[str, Any] | None = None,
    thorough: bool = False,
) -> BlockChecksums:
    """The checksums of the file at `path`, of `size` bytes; mapped, from a local copy of a URL.

    With `thorough` they are checked themselves, and may have blocks of any size.

    Raises:
        ChecksumFileError: there are none; they are damaged, of another file, or of blocks that are
            too large.
    """
    beside = checksum_path(path)
    try:
        data = open_copied(beside, storage_options).view()
    except FileNotFoundError as error:
        raise ChecksumFileError(
            f"{beside} does not exist, and checksums of {path} are asked for; write them with "
            f"coredata.formats.write_block_checksums({path.removesuffix(_BIN)!r}), or read with "
            '"checksums": False'
        ) from error
    checksums = read_checksums(beside, data, size, thorough)
    if not thorough and BLOCK % checksums.block:
        raise ChecksumFileError(
            f"{beside} has blocks of {checksums.block} bytes, and reading needs {BLOCK} or a part "
            f"of that; write them again with block={BLOCK}"
        )
    return checksums
