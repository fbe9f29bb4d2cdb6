"""A token file whose tokens were written under another name, made to appear as a whole."""

import contextlib
import os
from typing import Any

import numpy as np

from coredata.formats.growing_index import GrowingIndex
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.storage import GrowingChecksums, begin_write, checksum_path, local_path, remove

_PIECE = 1 << 20


def publish_partial(
    partial: str, index: GrowingIndex, target: str, dtype: np.dtype[Any], checksums: bool = False
) -> None:
    """Let a `.bin` file that is safe under another name, and its index, appear; the index last.

    With `checksums`, a `.crc` file too, for which the tokens are read once more. Until they appear,
    the other files lie beside `partial`, under names that are used again after a crash.
    """
    beside = checksum_path(get_bin_path(target))
    with contextlib.ExitStack() as files:
        # What is entered first is published last.
        pending = files.enter_context(begin_write(get_idx_path(target), temporary=f"{partial}.idx"))
        checksum = index.write(pending.file, dtype)
        pending.prepare()
        if checksums:
            side = files.enter_context(begin_write(beside, temporary=f"{partial}.crc"))
            for part in _checksums(partial).finish(checksum).stored():
                side.file.write(part)
            side.prepare()
        remove(get_idx_path(target))
        remove(beside)
        os.replace(partial, str(local_path(get_bin_path(target))))


def _checksums(path: str) -> GrowingChecksums:
    growing = GrowingChecksums()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            growing.update(piece)
    return growing
