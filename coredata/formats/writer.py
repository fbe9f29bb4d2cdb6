"""Writing token files: `PREFIX.bin` and `PREFIX.idx`."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from coredata._typing import Integer, Shaped
from coredata.formats.convert import as_tokens, first_misfit, misfit
from coredata.formats.dtypes import DType
from coredata.formats.errors import DocumentIndexError, IndexedDatasetError, TokenError
from coredata.formats.growing_index import GrowingIndex
from coredata.formats.indexed import IndexedDataset
from coredata.formats.paths import get_bin_path, get_idx_path
from coredata.formats.stream import check_dtype, token_chunks
from coredata.formats.verify import verify_structure
from coredata.storage import GrowingChecksums, PendingFile, begin_write, checksum_path, remove

_NO_DOCUMENT = np.empty(0, np.int64)


@final
class IndexedDatasetBuilder:
    """Writes a token file, sequence by sequence or in batches.

    Tokens go to disk as they come. Memory holds the index only, as arrays of machine integers:
    4 bytes a sequence, 8 a document. Nothing is visible under the final names before `finalize`;
    then `.bin` appears before `.idx`, without which nobody reads it.

        with IndexedDatasetBuilder("corpus", dtype=best_dtype(vocab_size)) as builder:
            builder.add_document([1, 2, 3, 4], lengths=[3, 1])

    The end of the `with` block finalizes; an exception that leaves it discards everything.

    Args:
        bin_path: the `.bin` file, or the prefix of the pair; a path or URL.
        dtype: dtype of the tokens in the file; see `best_dtype`.
        multimodal: whether each sequence gets a mode.
        checksums: also write `PREFIX.crc`, the checksums of the blocks of `.bin` and of `.idx`, so
            that readers of a URL can find flipped bytes (`ReadOptions.checksums`).
        durable: whether `finalize` waits until local files are on the disk; without, they outlive
            this process, but not for certain a crash of the machine.
        storage_options: for URLs, passed to fsspec.

    Raises:
        FileNotFoundError: the directory does not exist.
        DTypeError: the format has no such dtype.
    """

    def __init__(
        self,
        bin_path: str | os.PathLike[str],
        dtype: DTypeLike = np.int32,
        multimodal: bool = False,
        *,
        checksums: bool = False,
        durable: bool = True,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        DType.code_from_dtype(self.dtype)
        self.multimodal = multimodal
        self._prefix = os.fspath(bin_path).removesuffix(".bin")
        self._storage_options = storage_options
        self._index = GrowingIndex(multimodal)
        self._checksums = GrowingChecksums() if checksums else None
        self._durable = durable
        self._bin: PendingFile | None = self._begin(get_bin_path(self._prefix))

    @property
    def sequence_count(self) -> int:
        """Sequences added so far."""
        return self._index.sequence_count

    @property
    def document_count(self) -> int:
        """Documents ended so far."""
        return self._index.document_count

    def add_item(self, tokens: Any, mode: int = 0) -> None:
        """Add one sequence to the current document; `end_document` ends it.

        Raises:
            TokenError: a token that the dtype cannot hold.
        """
        flat = as_tokens(tokens)
        modes = np.array([mode]) if mode or self.multimodal else None
        self._add(flat, np.array([flat.size]), _NO_DOCUMENT, modes)

    def end_document(self) -> None:
        """End the current document; without sequences it is an empty document."""
        self._pending()
        self._index.extend(_NO_DOCUMENT, np.zeros(1, np.int64), None)

    def add_document(
        self, tokens: Any, lengths: Sequence[int], modes: Sequence[int] | None = None
    ) -> None:
        """Add a document of `len(lengths)` sequences, whose tokens follow one another.

        Raises:
            TokenError: a token that the dtype cannot hold.
            ValueError: the lengths do not add up to the number of tokens.
        """
        sizes = np.asarray(lengths, np.int64)
        self._add(
            as_tokens(tokens),
            sizes,
            np.array([sizes.size]),
            None if modes is None else np.asarray(modes, np.int64),
        )

    def add_documents(
        self,
        tokens: Shaped[np.ndarray, " tokens"],
        lengths: Integer[np.ndarray, " sequences"],
        sequences_per_document: Integer[np.ndarray, " documents"] | None = None,
        modes: Integer[np.ndarray, " sequences"] | None = None,
    ) -> None:
        """Add many documents at once: all their tokens, and the length of each sequence.

        `sequences_per_document` says how many sequences each document has (0 is an empty
        document); without it each sequence is a document.

        Raises:
            TokenError: a token that the dtype cannot hold; the text names its document.
            ValueError: the lengths do not add up to the number of tokens, or the sequences per
                document to the number of lengths.
        """
        per_document = sequences_per_document
        if per_document is None:
            per_document = np.ones(lengths.size, np.int64)
        if per_document.size and per_document.min() < 0:
            raise ValueError(
                f"a document is said to have {per_document.min()} sequences; it has 0 or more"
            )
        if per_document.sum() != lengths.size:
            raise ValueError(
                f"the documents are said to have {per_document.sum()} sequences in all, but there "
                f"are {lengths.size} lengths; the two must agree"
            )
        self._add(as_tokens(tokens), lengths, per_document, modes)

    def add_index(self, path_prefix: str | os.PathLike[str], widen: bool = False) -> None:
        """Add all sequences and documents of an existing token file.

        Its index is verified, its tokens are streamed. `widen` allows a source whose dtype is
        narrower than this one.

        Raises:
            DTypeError: the dtypes differ, or, with `widen`, the source's does not fit.
            DocumentIndexError: the current document has sequences and has not been ended.
            IndexedDatasetError: the source is damaged.
        """
        pending = self._pending()
        if self._index.open_sequences:
            raise DocumentIndexError(
                f"{pending.path}: the current document has {self._index.open_sequences} sequences; "
                "call end_document() before add_index()"
            )
        source = IndexedDataset(path_prefix, self.multimodal, storage_options=self._storage_options)
        check_dtype(source, self.dtype, widen)
        verify_structure(source)
        for chunk in token_chunks(source, self.dtype):
            self._write(pending, chunk)
        self._index.extend(
            source.sequence_lengths, np.diff(source.document_indices), source.sequence_modes
        )

    def finalize(self, idx_path: str | os.PathLike[str] | None = None) -> None:
        """Complete both files and let them appear; by default `.idx` goes beside `.bin`.

        An older pair of the same name is replaced. Its `.idx` and `.crc` go first, so that a crash
        in between leaves a pair that lacks a half, and never one whose halves do not match.

        Raises:
            DocumentIndexError: sequences were added after the last document was ended.
        """
        pending = self._pending()
        if self._index.open_sequences:
            raise DocumentIndexError(
                f"{pending.path}: {self._index.open_sequences} sequences were added after the last "
                "document was ended; call end_document() before finalize()"
            )
        target = get_idx_path(self._prefix) if idx_path is None else os.fspath(idx_path)
        try:
            with contextlib.ExitStack() as files:
                # What is entered first is published last.
                index = files.enter_context(self._begin(target))
                checksum = self._index.write(index.file, self.dtype)
                index.prepare()
                beside = checksum_path(get_bin_path(self._prefix))
                if self._checksums is not None:
                    checksums = self._checksums.finish(checksum)
                    side = files.enter_context(self._begin(beside))
                    for part in checksums.stored():
                        side.file.write(part)
                    side.prepare()
                pending.prepare()
                remove(target, self._storage_options)
                remove(beside, self._storage_options)
                pending.publish()
        finally:
            self.abort()

    def abort(self) -> None:
        """Discard everything that was added; harmless after `finalize`."""
        if self._bin is not None:
            self._bin.abort()
        self._bin = None

    def __enter__(self) -> "IndexedDatasetBuilder":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if exc_type is None and self._bin is not None:
                self.finalize()
        finally:
            self.abort()

    def _begin(self, path: str) -> PendingFile:
        return begin_write(path, self._storage_options, durable=self._durable)

    def _pending(self) -> PendingFile:
        if self._bin is None:
            raise IndexedDatasetError(
                f"{get_bin_path(self._prefix)} was finalized or aborted; start a new builder"
            )
        return self._bin

    def _add(
        self,
        tokens: np.ndarray,
        lengths: np.ndarray,
        per_document: np.ndarray,
        modes: np.ndarray | None,
    ) -> None:
        """Check everything, then write; `per_document` is empty when no document ends here."""
        pending = self._pending()
        lengths = lengths.astype(np.int64, copy=False)
        self._index.check(tokens.size, lengths, modes)
        position = first_misfit(tokens, self.dtype)
        if position is not None:
            where = self._index.place(position, lengths, per_document)
            raise TokenError(f"{pending.path}: {where}: {misfit(tokens[position], self.dtype)}")
        self._write(pending, np.ascontiguousarray(tokens, self.dtype))
        self._index.extend(lengths, per_document, modes)

    def _write(self, pending: PendingFile, tokens: np.ndarray) -> None:
        try:
            pending.file.write(tokens.data)
        except OSError:  # part of it may be written, so the index would no longer match
            self.abort()
            raise
        if self._checksums is not None:
            self._checksums.update(tokens.data)
