"""Reading token files: `PREFIX.bin` and `PREFIX.idx`."""

import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, final

import numpy as np
from numpy.typing import DTypeLike

from coredata._typing import Int8, Int32, Int64, Shaped
from coredata.formats.errors import SequenceLengthError
from coredata.formats.index import Index
from coredata.formats.pair import Options, known_counts, open_pair
from coredata.formats.paths import get_idx_path, prefix_exists
from coredata.formats.spans import (
    MappedTokens,
    all_tokens,
    fits,
    hint_spans,
    locate_spans,
    outside_file,
    read_spans,
)
from coredata.storage import ByteReader

Item = Shaped[np.ndarray, " tokens"] | tuple[Shaped[np.ndarray, " tokens"], np.int8]


@final
class IndexedDataset:
    """The sequences of a token file, by number, and ranges of many of them at once.

    A source of tokens for datasets (`coredata.datasets.protocol.TokenSource`). It pickles to its
    path and options, and opens its files again on first use. Arrays it returns are read-only
    views of the files where these are mapped. If another program makes a mapped file shorter
    meanwhile, the process ends with a bus error at the next read behind its end: write new files
    and rename them instead, or read with `mmap=False`, which raises an error.

    Args:
        path_prefix: path or URL of the pair of files, without `.bin` and `.idx`.
        multimodal: whether each sequence has a mode; items then come as (tokens, mode).
        mmap: map the `.bin` file into memory, which must not become shorter meanwhile; False
            reads it by position, and raises an error then. URLs are read by ranges.
        storage_options: for URLs, passed to fsspec.
        sequences_per_dataset: the counts in the header of `.idx` (sequences, and entries of the
            document list) where they are known; with `dtype_code`, the header is not read.
        dtype_code: see `DType`.
        fast_cache_load: open nothing and check nothing until the first use.

    Raises:
        MissingFileError: one or both files are missing.
        IndexedDatasetError: the files are not what they should be; see `coredata.formats.errors`.
    """

    def __init__(
        self,
        path_prefix: str | os.PathLike[str],
        multimodal: bool = False,
        mmap: bool = True,
        *,
        storage_options: Mapping[str, Any] | None = None,
        sequences_per_dataset: Sequence[int] | None = None,
        dtype_code: int | None = None,
        fast_cache_load: bool = False,
    ) -> None:
        self._options = Options(
            path_prefix=os.fspath(path_prefix),
            multimodal=multimodal,
            mmap=mmap,
            storage_options=storage_options,
            sequences_per_dataset=known_counts(sequences_per_dataset, dtype_code),
            dtype_code=dtype_code,
        )
        self._opened: tuple[Index, ByteReader] | None = None
        self._mapped: tuple[np.ndarray | None, str, MappedTokens | None] | None = None
        if not fast_cache_load:
            self._open()

    @staticmethod
    def exists(
        path_prefix: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
    ) -> bool:
        """Whether both files of the prefix exist."""
        return prefix_exists(path_prefix, storage_options)

    @property
    def path_prefix(self) -> str:
        """The prefix, as it was given."""
        return self._options.path_prefix

    @property
    def multimodal(self) -> bool:
        """Whether each sequence has a mode."""
        return self._options.multimodal

    @property
    def index(self) -> Index:
        """The `.idx` file as arrays."""
        return self._open()[0]

    @property
    def bin_reader(self) -> ByteReader:
        """The bytes of the `.bin` file."""
        return self._open()[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which the tokens are stored."""
        return self.index.dtype

    @property
    def sequence_lengths(self) -> Int32[np.ndarray, " sequences"]:
        """Tokens in each sequence."""
        return self.index.sequence_lengths

    @property
    def sequence_pointers(self) -> Int64[np.ndarray, " sequences"]:
        """Byte of `.bin` at which each sequence begins."""
        return self.index.sequence_pointers

    @property
    def document_indices(self) -> Int64[np.ndarray, " boundaries"]:
        """First sequence of each document, then the number of sequences."""
        return self.index.document_indices

    @property
    def sequence_modes(self) -> Int8[np.ndarray, " sequences"] | None:
        """Mode of each sequence; None in a file without modes."""
        return self.index.sequence_modes

    def __len__(self) -> int:
        return self.sequence_lengths.size

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        """Sequence `index`, or a list of the sequences of a slice, which is one read.

        In a multimodal file: (tokens, mode), or (list of tokens, modes).

        Raises:
            IndexError: there is no such sequence.
            ValueError: a slice whose step is not 1.
        """
        if isinstance(index, slice):
            return self._slice(index)
        return self.get(index)

    def get(
        self, index: SupportsIndex, offset: SupportsIndex = 0, length: SupportsIndex | None = None
    ) -> Item:
        """Part of sequence `index`: `length` tokens from token `offset`, by default to its end.

        Raises:
            IndexError: there is no such sequence.
            ValueError: the part leaves the sequence.
        """
        files, reader = self._open()
        number = self._number(index)
        available = int(files.sequence_lengths[number])
        begin = operator.index(offset)
        wanted = available - begin if length is None else operator.index(length)
        if begin < 0 or wanted < 0 or begin + wanted > available:
            asked = "the rest" if length is None else f"{length} tokens"
            raise ValueError(
                f"{self.path_prefix}: asked for {asked} from token {begin} of sequence {number}, "
                f"which has {available} tokens; offset + length must be at most that"
            )
        start = int(files.sequence_pointers[number]) + begin * files.dtype.itemsize
        tokens = self._tokens(files, reader, number, start, wanted)
        return tokens if files.sequence_modes is None else (tokens, files.sequence_modes[number])

    def read_into(
        self,
        sequences: Int64[np.ndarray, " spans"],
        offsets: Int64[np.ndarray, " spans"],
        lengths: Int64[np.ndarray, " spans"],
        out: Shaped[np.ndarray, " tokens"],
        out_offsets: Int64[np.ndarray, " spans"],
    ) -> None:
        """Copy `lengths[i]` tokens from `offsets[i]` of sequence `sequences[i]` to `out`.

        They go to `out[out_offsets[i] :]`, converted to the dtype of `out`; the rest of `out` is
        left alone. Units are tokens. All spans are checked before the first byte is touched, so
        a damaged index is an error, never a crash. A dtype that cannot hold every stored value
        is fine as long as it holds those that are read.

        Raises:
            IndexError: a sequence that does not exist.
            ValueError: a span that leaves its sequence or `out`; a value that `out` cannot hold.
            SequencePointerError: a sequence that is not inside the `.bin` file.
        """
        files, reader = self._open()
        read_spans(self.path_prefix, files, reader, sequences, offsets, lengths, out, out_offsets)

    def locate(
        self,
        sequences: Int64[np.ndarray, " spans"],
        offsets: Int64[np.ndarray, " spans"],
        lengths: Int64[np.ndarray, " spans"],
        out_size: int,
        out_offsets: Int64[np.ndarray, " spans"],
        dtype: DTypeLike,
    ) -> tuple[Shaped[np.ndarray, " tokens"], Int64[np.ndarray, " spans"]] | None:
        """Where spans lie, for readers that need no copy: all tokens, and each span's start.

        The same checks as for `read_into` an array of `out_size` elements of `dtype`. None where
        tokens have to be copied or checked: the file is not mapped, a span begins in the middle
        of an item, `dtype` cannot hold every stored value, or there is no span.

        Raises:
            IndexError, ValueError, SequencePointerError: as for `read_into`.
        """
        files, reader = self._open()
        return locate_spans(
            self.path_prefix,
            files,
            reader,
            sequences,
            offsets,
            lengths,
            out_size,
            out_offsets,
            np.dtype(dtype),
        )

    def looks_ahead(self) -> bool:
        """Whether `prefetch` is of use: it is for files behind URLs."""
        return self.bin_reader.looks_ahead()

    def prefetch(
        self,
        sequences: Int64[np.ndarray, " spans"],
        offsets: Int64[np.ndarray, " spans"],
        lengths: Int64[np.ndarray, " spans"],
    ) -> None:
        """Begin to fetch spans that will be read soon; what does not exist is left out."""
        files, reader = self._open()
        hint_spans(files, reader, sequences, offsets, lengths)

    def mapped_tokens(self, dtype: str) -> MappedTokens | None:
        """All there is to read spans in compiled code: tokens, and where each sequence lies.

        The tokens of the whole `.bin` file, the length of each sequence, and the byte at which it
        begins. Nothing is checked: see `coredata.formats.gather.plan_spans`. None where tokens
        have to be copied or converted first: the file is not mapped, or `dtype` cannot hold every
        stored value.
        """
        files, reader = self._open()
        view = reader.view()
        if self._mapped is None or self._mapped[0] is not view or self._mapped[1] != dtype:
            known = None
            if view is not None and fits(files.dtype, np.dtype(dtype)):
                tokens = all_tokens(view, files.dtype)
                known = (tokens, files.sequence_lengths, files.sequence_pointers)
            self._mapped = (view, dtype, known)
        return self._mapped[2]

    def identity(self) -> Mapping[str, Any]:
        """What the file is, wherever it lies: name, sequences, documents, tokens, dtype."""
        index = self.index
        return {
            "name": os.path.basename(self.path_prefix),
            "sequences": index.sequence_lengths.size,
            "documents": index.document_indices.size - 1,
            "tokens": index.end // index.dtype.itemsize,
            "dtype": index.dtype.name,
        }

    def close(self) -> None:
        """Let the files go. Arrays handed out stay valid; the next use opens the files again."""
        if self._opened is not None:
            self._opened[1].close()
        self._opened = self._mapped = None

    def __getstate__(self) -> Options:
        return self._options

    def __setstate__(self, options: Options) -> None:
        self._options = options
        self._opened = self._mapped = None

    def __repr__(self) -> str:
        return f"IndexedDataset({self.path_prefix!r})"

    def _open(self) -> tuple[Index, ByteReader]:
        if self._opened is None:
            self._opened = open_pair(self._options)
        return self._opened

    def _number(self, index: SupportsIndex) -> int:
        number, count = operator.index(index), len(self)
        if not -count <= number < count:
            raise IndexError(
                f"{self.path_prefix}: asked for sequence {number}, but there are {count} sequences"
            )
        return number % count

    def _slice(self, wanted: slice) -> Any:
        files, reader = self._open()
        first, stop, step = wanted.indices(len(self))
        if step != 1:
            raise ValueError(
                f"{self.path_prefix}: asked for a slice with step {step}; only step 1 can be read "
                "(use read_into for any selection)"
            )
        stop = max(first, stop)
        lengths = files.sequence_lengths[first:stop].astype(np.int64)
        if lengths.size and lengths.min() < 0:
            raise SequenceLengthError(
                f"{get_idx_path(self.path_prefix)}: a sequence from {first} to {stop} has a "
                f"negative length, {lengths.min()}; the file is damaged"
            )
        whole = self._several(files, reader, first, lengths)
        ends = np.cumsum(lengths).tolist()
        sequences = [whole[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        modes = files.sequence_modes
        return sequences if modes is None else (sequences, modes[first:stop])

    def _several(
        self, files: Index, reader: ByteReader, first: int, lengths: np.ndarray
    ) -> np.ndarray:
        """The tokens of successive sequences, one after the other."""
        pointers = files.sequence_pointers[first : first + lengths.size]
        if lengths.size and np.array_equal(
            pointers[1:], pointers[:-1] + lengths[:-1] * files.dtype.itemsize
        ):
            return self._tokens(files, reader, first, int(pointers[0]), int(lengths.sum()))
        whole = np.empty(lengths.sum(), files.dtype)
        numbers = np.arange(first, first + lengths.size, dtype=np.int64)
        self.read_into(
            numbers, np.zeros_like(numbers), lengths, whole, np.cumsum(lengths) - lengths
        )
        return whole

    def _tokens(
        self, files: Index, reader: ByteReader, number: int, start: int, count: int
    ) -> np.ndarray:
        size = count * files.dtype.itemsize
        if not 0 <= start <= reader.size - size:
            raise outside_file(self.path_prefix, number, files, reader.size)
        if count == 0:
            return np.empty(0, files.dtype)
        return np.frombuffer(reader.read(start, size), files.dtype)
