"""Sources of tokens that need no file: arrays in memory."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int64, Integer


class ArraySource:
    """Sequences of tokens that lie end to end in one array.

    Args:
        tokens: all tokens, in order.
        lengths: tokens of each sequence; they add up to `len(tokens)`.
        name: what errors and fingerprints call it.

    Raises:
        ValueError: a negative length, or lengths that do not add up.
    """

    def __init__(
        self,
        tokens: Integer[np.ndarray, " tokens"],
        lengths: Integer[np.ndarray, " sequences"],
        name: str = "array",
    ) -> None:
        if len(lengths) and int(lengths.min()) < 0:
            raise ValueError(f"lengths: got {int(lengths.min())}, need lengths of at least 0")
        total = int(lengths.sum(dtype=np.int64))
        if total != len(tokens):
            raise ValueError(
                f"lengths: they add up to {total}, but there are {len(tokens)} tokens; give every "
                "token to a sequence"
            )
        self.name = name
        self.tokens = tokens
        self.sequence_lengths = lengths.astype(np.int32)
        self._starts = np.cumsum(lengths, dtype=np.int64) - lengths

    def __len__(self) -> int:
        return len(self.sequence_lengths)

    def __getitem__(self, sequence: int) -> Integer[np.ndarray, " tokens"]:
        """Tokens of one sequence."""
        start = self._starts[sequence]
        return self.tokens[start : start + self.sequence_lengths[sequence]]

    def read_into(
        self,
        sequences: Int64[np.ndarray, " spans"],
        offsets: Int64[np.ndarray, " spans"],
        lengths: Int64[np.ndarray, " spans"],
        out: Integer[np.ndarray, " tokens_out"],
        out_offsets: Int64[np.ndarray, " spans"],
    ) -> None:
        """Copy ranges of sequences to `out`; see `TokenSource`."""
        check_spans(self.name, self.sequence_lengths, sequences, offsets, lengths, out, out_offsets)
        _copy_spans(self.tokens, self._starts[sequences] + offsets, lengths, out, out_offsets)

    def identity(self) -> Mapping[str, Any]:
        """Name, counts, dtype, and a digest of the tokens."""
        return {
            "name": self.name,
            "sequences": len(self),
            "documents": len(self),
            "tokens": len(self.tokens),
            "dtype": self.tokens.dtype.name,
            "digest": hashlib.sha256(np.ascontiguousarray(self.tokens).tobytes()).hexdigest()[:16],
        }


def check_spans(
    name: str,
    sequence_lengths: Integer[np.ndarray, " sequences"],
    sequences: Int64[np.ndarray, " spans"],
    offsets: Int64[np.ndarray, " spans"],
    lengths: Int64[np.ndarray, " spans"],
    out: Integer[np.ndarray, " tokens_out"],
    out_offsets: Int64[np.ndarray, " spans"],
) -> None:
    """Refuse spans that leave their sequence or `out`.

    Raises:
        IndexError: a sequence that does not exist.
        ValueError: a span that leaves its sequence or `out`.
    """
    missing = (sequences < 0) | (sequences >= len(sequence_lengths))
    if missing.any():
        span = int(missing.argmax())
        raise IndexError(
            f"{name}: span {span} asks for sequence {sequences[span]}, but there are "
            f"{len(sequence_lengths)}, numbered from 0"
        )
    available = sequence_lengths[sequences]
    outside = (offsets < 0) | (lengths < 0) | (offsets + lengths > available)
    if outside.any():
        span = int(outside.argmax())
        raise ValueError(
            f"{name}: span {span} asks for {lengths[span]} tokens from offset {offsets[span]} of "
            f"sequence {sequences[span]}, which has {available[span]}"
        )
    outside = (out_offsets < 0) | (out_offsets + lengths > len(out))
    if outside.any():
        span = int(outside.argmax())
        raise ValueError(
            f"{name}: span {span} writes {lengths[span]} tokens at {out_offsets[span]} of a "
            f"buffer of {len(out)}; make the buffer longer"
        )


@kernel
def _copy_spans(tokens, starts, lengths, out, out_offsets):
    for span in range(len(starts)):
        start = starts[span]
        to = out_offsets[span]
        for i in range(lengths[span]):
            out[to + i] = tokens[start + i]
