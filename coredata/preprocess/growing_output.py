"""The output on a local disk, put together while its later shards are still being made."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, BinaryIO, final

import numpy as np

from coredata.formats import IndexedDataset, IndexedDatasetError, get_bin_path
from coredata.formats.full_disk import HOW_TO_SEE, is_full
from coredata.formats.growing_index import GrowingIndex
from coredata.formats.publishing import publish_partial
from coredata.formats.verify import verify_indexed
from coredata.preprocess.errors import PreprocessError
from coredata.preprocess.work import Joined, WorkDirectory
from coredata.storage import open_binary

_COPIED = 1 << 20
_SHARE = 10
"""Making sure that bytes are on the disk takes one part of so many of the time, at most."""


@final
class GrowingOutput:
    """For each key the tokens of all part files, end to end, in a file of the work directory.

    Which bytes these are follows from the work alone, so a run that goes on has only to know how
    many of them are on the disk. As a context manager it holds the files.

    Args:
        work: where part files are, and these files.
        targets: prefix of the output of each key.
        dtype: of the tokens.
        checksums: also write their `.crc` files.
    """

    def __init__(
        self,
        work: WorkDirectory,
        targets: Sequence[str],
        dtype: np.dtype[Any],
        checksums: bool = False,
    ) -> None:
        self._work = work
        self._checksums = checksums
        self._targets = list(targets)
        self._dtype = dtype
        self._indices = [GrowingIndex(multimodal=False) for _ in targets]
        self._shards = 0
        self._files: list[BinaryIO] = []
        self._open = contextlib.ExitStack()
        self._noted = work.joined(len(self._targets))
        self._note_after = 0.0

    def __enter__(self) -> "GrowingOutput":
        with contextlib.ExitStack() as opened:
            for number in range(len(self._targets)):
                path = self._work.joined_path(number)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                self._files.append(opened.enter_context(open(descriptor, "rb+")))
            for file, size in zip(self._files, self._noted.sizes, strict=True):
                file.truncate(size)
                file.seek(size)
            self._open = opened.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()

    def add(self) -> None:
        """Take the next shard, whose part files are complete.

        Raises:
            IndexedDatasetError: a part file is damaged.
            PreprocessError: the disk is full.
        """
        with self._telling_of_a_full_disk():
            self._add()

    def _add(self) -> None:
        shard, self._shards = self._shards, self._shards + 1
        for number, (file, index) in enumerate(zip(self._files, self._indices, strict=True)):
            prefix = self._work.part_prefix(shard, number)
            part = IndexedDataset(prefix)
            index.extend(part.sequence_lengths, np.diff(part.document_indices), None)
            if shard >= self._noted.shards:
                with open_binary(get_bin_path(prefix)) as tokens:
                    shutil.copyfileobj(tokens, file, _COPIED)
        if shard >= self._noted.shards and time.monotonic() >= self._note_after:
            self._note()

    def finish(self) -> None:
        """Let the outputs appear, once all shards were added.

        Raises:
            IndexedDatasetError: an output is not what was written; another process wrote to it.
            PreprocessError: the disk is full.
        """
        with self._telling_of_a_full_disk():
            self._finish()

    def _finish(self) -> None:
        self._make_safe()
        for number, (index, target) in enumerate(zip(self._indices, self._targets, strict=True)):
            joined = self._work.joined_path(number)
            publish_partial(joined, index, target, self._dtype, self._checksums)
            found = verify_indexed(target)
            if (found.sequences, found.documents) != (index.sequence_count, index.document_count):
                raise IndexedDatasetError(
                    f"{target} has {found.sequences} sequences and {found.documents} documents, "
                    f"but {index.sequence_count} and {index.document_count} were written; another "
                    "process wrote to it"
                )

    @contextlib.contextmanager
    def _telling_of_a_full_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not is_full(error):
                raise
            raise PreprocessError(
                f"what is made of the shards cannot be put together in {self._work.path} "
                f"({error.strerror}). Make room there ({HOW_TO_SEE}) and run the same again: "
                "finished shards are kept. Or give another output prefix (--output-prefix)"
            ) from error

    def _note(self) -> None:
        begun = time.monotonic()
        sizes = self._make_safe()
        self._work.note_joined(Joined(self._shards, sizes))
        ended = time.monotonic()
        self._note_after = ended + (ended - begun) * (_SHARE - 1)

    def _make_safe(self) -> tuple[int, ...]:
        """Wait until all is on the disk; how much that is."""
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        return tuple(file.tell() for file in self._files)
