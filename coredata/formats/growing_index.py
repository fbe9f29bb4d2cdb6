"""The index of a file being written: arrays of machine integers that grow."""

import array
import io
from typing import Any, BinaryIO, final

import numpy as np

from coredata._typing import Int64, Integer
from coredata.formats.checksums import CountedFile
from coredata.formats.errors import SequenceLengthError
from coredata.formats.layout import write_index

_LONGEST = 2**31 - 1


@final
class GrowingIndex:
    """Sequence lengths (4 bytes each), document ends (8 bytes each) and modes (1 byte each)."""

    def __init__(self, multimodal: bool) -> None:
        self._multimodal = multimodal
        self._lengths = array.array("i")
        self._documents = array.array("q", [0])
        self._modes = array.array("b")

    @property
    def sequence_count(self) -> int:
        """Sequences so far."""
        return len(self._lengths)

    @property
    def document_count(self) -> int:
        """Documents ended so far."""
        return len(self._documents) - 1

    @property
    def open_sequences(self) -> int:
        """Sequences added since the last document was ended."""
        return len(self._lengths) - self._documents[-1]

    def check(
        self,
        tokens: int,
        lengths: Int64[np.ndarray, " sequences"],
        modes: Integer[np.ndarray, " modes"] | None,
    ) -> None:
        """Check what is to be added, before anything is.

        Raises:
            SequenceLengthError: a length that is negative or above 2^31 - 1.
            ValueError: lengths that do not add up to `tokens`; modes that do not fit.
        """
        if lengths.size and not 0 <= lengths.min() <= lengths.max() <= _LONGEST:
            wrong = int(np.argmax((lengths < 0) | (lengths > _LONGEST)))
            raise SequenceLengthError(
                f"sequence {self.sequence_count + wrong} has length {lengths[wrong]}; the format "
                f"stores lengths from 0 to {_LONGEST}: split it into several sequences"
            )
        if lengths.sum() != tokens:
            raise ValueError(
                f"the lengths add up to {lengths.sum()}, but there are {tokens} tokens; they must "
                "be equal"
            )
        if modes is None:
            return
        if not self._multimodal:
            raise ValueError("modes were given, but the file has none; pass multimodal=True")
        if modes.size != lengths.size:
            raise ValueError(
                f"there are {modes.size} modes for {lengths.size} sequences; give one for each"
            )
        if modes.size and not -128 <= modes.min() <= modes.max() <= 127:
            raise ValueError(
                f"modes go from {modes.min()} to {modes.max()}; they must lie in -128 to 127"
            )

    def place(
        self,
        position: int,
        lengths: Int64[np.ndarray, " sequences"],
        per_document: Integer[np.ndarray, " documents"],
    ) -> str:
        """Where token `position` of what is to be added would be, in words."""
        ends = np.cumsum(lengths)
        sequence = int(np.searchsorted(ends, position, "right"))
        document = int(np.searchsorted(np.cumsum(per_document), sequence, "right"))
        offset = position - int(ends[sequence] - lengths[sequence])
        return (
            f"document {self.document_count + document}, sequence "
            f"{self.sequence_count + sequence}, token {offset}"
        )

    def extend(
        self,
        lengths: Integer[np.ndarray, " sequences"],
        per_document: Integer[np.ndarray, " documents"],
        modes: Integer[np.ndarray, " sequences"] | None,
    ) -> None:
        """Add sequences, and end documents of so many sequences each; modes default to 0."""
        ends = np.cumsum(per_document, dtype=np.int64)
        ends += len(self._lengths)
        self._lengths.frombytes(_bytes(lengths, np.int32))
        self._documents.frombytes(_bytes(ends, np.int64))
        if self._multimodal:
            kept = np.zeros(lengths.size, np.int8) if modes is None else modes
            self._modes.frombytes(_bytes(kept, np.int8))

    def write(self, file: BinaryIO, dtype: np.dtype[Any]) -> int:
        """Write the `.idx` file; its CRC-32."""
        counted = CountedFile(file)
        with io.BufferedWriter(counted) as buffered:
            write_index(
                buffered,
                dtype,
                np.asarray(self._lengths).view(np.int32),
                np.asarray(self._documents).view(np.int64),
                np.asarray(self._modes) if self._multimodal else None,
            )
        return counted.checksum


def _bytes(values: np.ndarray, dtype: type[np.integer[Any]]) -> memoryview:
    return np.ascontiguousarray(values, dtype).view(np.uint8).data
