"""Merging onto a local disk so that a merge that was killed goes on where it was.

The bytes of the output follow from the inputs alone, so that a count of bytes is all that has to be
remembered. They are written to `.NAME.bin.merging`; beside it, `.NAME.merging.json` says of which
inputs they are and how many are known to be on the disk.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from coredata.formats.errors import IndexedDatasetError
from coredata.formats.full_disk import HOW_TO_SEE, is_full
from coredata.formats.growing_index import GrowingIndex
from coredata.formats.indexed import IndexedDataset
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.formats.publishing import publish_partial
from coredata.formats.stream import check_dtype, token_chunks
from coredata.formats.verify import verify_structure
from coredata.storage import atomic_write, local_path, size

SAFE_EVERY = 1 << 28
"""Bytes between two points from which a merge can go on."""
_LEAST_ROOM = 1 << 16
"""Bytes that are freed on a full disk, for the note of how many are there."""

Progress = Callable[[int, int], None]
"""Told how many bytes are done, of how many."""


def write_kept(
    sources: list[str],
    target: str,
    dtype: np.dtype[Any],
    multimodal: bool,
    widen: bool,
    storage_options: Mapping[str, Any] | None,
    progress: Progress | None = None,
    safe_every: int = SAFE_EVERY,
    checksums: bool = False,
) -> tuple[int, int]:
    """Write `target`, a local prefix, from all sources; how many sequences and documents it has.

    With `checksums`, its `.crc` file too.

    Raises:
        DTypeError: a source's dtype does not fit.
        IndexedDatasetError: a source is damaged, or another process merges into `target`.
        FileNotFoundError: no such directory.
        OSError: the disk is full; the text says what is kept.
    """
    opened = [_open(source, dtype, multimodal, widen, storage_options) for source in sources]
    sizes = [int(one.sequence_lengths.sum(dtype=np.int64)) * dtype.itemsize for one in opened]
    partial, journal = _beside(target, "bin.merging"), _beside(target, "merging.json")
    plan = {
        "dtype": dtype.name,
        "modes": multimodal,
        "sources": [_identity(source, storage_options) for source in sources],
    }
    kept = _Kept(target, partial, journal, plan, sum(sizes))
    with kept.told_when_full(dtype.itemsize), locked_partial(partial, target) as file:
        done = _safe(journal, plan, os.fstat(file.fileno()).st_size)
        file.truncate(done)
        file.seek(done)
        begin, noted = 0, done
        for source, length in zip(opened, sizes, strict=True):
            skipped = min(max(done - begin, 0), length)
            for chunk in token_chunks(source, dtype, start=skipped // dtype.itemsize):
                file.write(chunk.data)
                if file.tell() - noted >= safe_every:
                    noted = _note(file, journal, plan)
                if progress is not None:
                    progress(file.tell(), sum(sizes))
            begin += length
        _note(file, journal, plan)
        index = GrowingIndex(multimodal)
        for source in opened:
            index.extend(
                source.sequence_lengths, np.diff(source.document_indices), source.sequence_modes
            )
        publish_partial(partial, index, target, dtype, checksums)
        os.unlink(journal)
    return index.sequence_count, index.document_count


def _open(
    source: str,
    dtype: np.dtype[Any],
    multimodal: bool,
    widen: bool,
    storage_options: Mapping[str, Any] | None,
) -> IndexedDataset:
    dataset = IndexedDataset(source, multimodal, storage_options=storage_options)
    check_dtype(dataset, dtype, widen)
    verify_structure(dataset)
    return dataset


def _beside(target: str, suffix: str) -> str:
    directory, name = os.path.split(os.path.abspath(str(local_path(target))))
    if not os.path.isdir(directory):
        raise FileNotFoundError(
            f"cannot write {target}: the directory {directory} does not exist; create it first"
        )
    return os.path.join(directory, f".{name}.{suffix}")


def _identity(source: str, storage_options: Mapping[str, Any] | None) -> list[Any]:
    """Name, sizes, and of local files the time of their last change."""
    found: list[Any] = [source]
    for path in (get_bin_path(source), get_idx_path(source)):
        local = local_path(path)
        if local is None:
            found.append(size(path, storage_options))
        else:
            stat = os.stat(local)
            found += [stat.st_size, stat.st_mtime_ns]
    return found


@contextlib.contextmanager
def locked_partial(partial: str, target: str) -> Iterator[BinaryIO]:
    """The partial file of `target`, opened for this process alone; the lock ends with it.

    Raises:
        IndexedDatasetError: another process has it.
    """
    while True:
        with open(os.open(partial, os.O_RDWR | os.O_CREAT, 0o666), "rb+") as file:
            _lock(file, target)
            if _is_still(file, partial):
                yield file
                return


def _lock(file: BinaryIO, target: str) -> None:
    try:
        import fcntl
    except ModuleNotFoundError:  # Not on Windows.
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise IndexedDatasetError(
            f"another process is merging into {target}; wait for it, or give another output"
        ) from error


def _is_still(file: BinaryIO, partial: str) -> bool:
    """Whether no other process has finished this file between its opening and its lock."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(partial))
    except FileNotFoundError:
        return False


def _safe(journal: str, plan: Mapping[str, Any], there: int) -> int:
    """Bytes of an earlier merge of the same inputs that can be kept."""
    try:
        with open(journal, encoding="utf-8") as file:
            noted = json.load(file)
        kept = int(noted["bytes"]) if noted["plan"] == plan else 0
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0
    return kept if 0 <= kept <= there else 0


@dataclass(frozen=True)
class _Kept:
    """A merge that the disk may be too small for."""

    target: str
    partial: str
    journal: str
    plan: Mapping[str, Any]
    total: int

    @contextlib.contextmanager
    def told_when_full(self, itemsize: int) -> Iterator[None]:
        """Tell an error of a full disk with what is kept, and where.

        Raises:
            OSError: the disk is full.
        """
        try:
            yield
        except OSError as error:
            if not is_full(error) or not os.path.exists(self.partial):
                raise
            kept = self._keep(itemsize)
            raise type(error)(
                f"{self.target} cannot be written to its end ({error.strerror}). {kept:,} of "
                f"{self.total:,} bytes of tokens are kept in {self.partial}. Make room there "
                f"({HOW_TO_SEE}), and the same merge goes on from them; or delete it and "
                f"{self.journal}, and give another output prefix (--output-prefix)"
            ) from error

    def _keep(self, itemsize: int) -> int:
        """Bytes from which the same merge goes on.

        All that reached the file are as they should be; the last are given up, as a note of how
        many there are needs room too.
        """
        noted = 0
        with contextlib.suppress(OSError), locked_partial(self.partial, self.target) as file:
            there = os.fstat(file.fileno()).st_size
            noted = _safe(self.journal, self.plan, there)
            room = _LEAST_ROOM + 2 * len(json.dumps(self.plan))
            kept = (there - room) // itemsize * itemsize
            if kept > noted:
                file.truncate(kept)
                file.seek(kept)
                noted = _note(file, self.journal, self.plan)
        return noted


def _note(file: BinaryIO, journal: str, plan: Mapping[str, Any]) -> int:
    """Make what was written safe, then remember how much it is."""
    file.flush()
    os.fsync(file.fileno())
    with atomic_write(journal) as note:
        note.write(json.dumps({"plan": plan, "bytes": file.tell()}).encode())
    return file.tell()
