"""Made-up rows: counting numbers of given lengths, or real tokens cut to them."""

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from coredata._typing import Int64
from coredata.datasets.protocol import TokenSource
from coredata.datasets.sft_config import SFTDatasetConfig
from coredata.formats import IndexedDataset
from coredata.storage import read_bytes
from coredata.varlen import MockLengths, counting_tokens, parse_lengths


@final
class MockRows:
    """Tokens of made-up samples, without their end token.

    Args:
        options: where lengths (and, in mode "verification", tokens) come from.
        tokens: the token files of mode "verification".

    Raises:
        ValueError: a file of other things than lengths, or token files without tokens.
        FileNotFoundError: no such file.
    """

    def __init__(self, options: MockLengths, tokens: TokenSource | None = None) -> None:
        self.options = options
        self._tokens = tokens
        if tokens is not None and not np.any(tokens.sequence_lengths):
            raise ValueError(
                f"data_path: the token files {options.data_path} hold no tokens, and samples are "
                "made of them. Give others"
            )
        self.__setstate__((options, tokens))

    def __getstate__(self) -> tuple[MockLengths, TokenSource | None]:
        """Lengths are drawn or read again where they arrive."""
        return self.options, self._tokens

    def __setstate__(self, state: tuple[MockLengths, TokenSource | None]) -> None:
        self.options, self._tokens = state
        if self.options.mode == "file" and self.options.path is not None:
            text = read_bytes(self.options.path).decode("utf-8")
            self.sequence_lengths = parse_lengths(text, self.options.path)
        else:
            self.sequence_lengths = self.options.draw()

    def __len__(self) -> int:
        return len(self.sequence_lengths)

    def __getitem__(self, row: int) -> Int64[np.ndarray, " tokens"]:
        """The tokens of a row: one fewer than its length."""
        length = int(self.sequence_lengths[row % len(self)])
        if self._tokens is None:
            return counting_tokens(length)
        return _consecutive(self._tokens, row, length - 1)

    def where(self, row: int) -> str:
        """What errors call a row."""
        return f"made-up row {row}"

    def identity(self) -> Mapping[str, Any]:
        """Name, rows, tokens, and what the tokens are."""
        tokens = {} if self._tokens is None else self._tokens.identity()
        return {
            "name": "mock",
            "rows": len(self),
            "lengths": int(self.sequence_lengths.sum()),
            "mode": self.options.mode,
            "format": self.options.format,
            **{f"tokens_{key}": value for key, value in tokens.items()},
        }


def build_mock_rows(config: SFTDatasetConfig) -> MockRows:
    """The rows that the options of a configuration ask for.

    Raises:
        ValueError: an option out of range, or files that do not hold what they should.
        FileNotFoundError: no such file.
    """
    options = config.mock_lengths()
    tokens = None
    if options.mode == "verification" and options.data_path is not None:
        tokens = IndexedDataset(options.data_path, mmap=config.mmap_bin_files)
    return MockRows(options, tokens)


def _consecutive(source: TokenSource, first: int, wanted: int) -> Int64[np.ndarray, " tokens"]:
    """`wanted` tokens of the sequences from number `first` modulo their count on, around."""
    lengths = source.sequence_lengths
    sequences, taken = [], []
    sequence, missing = first % len(lengths), wanted
    while missing > 0:
        found = min(int(lengths[sequence]), missing)
        sequences.append(sequence)
        taken.append(found)
        sequence, missing = (sequence + 1) % len(lengths), missing - found
    out = np.empty(wanted, np.int64)
    counts = np.array(taken, np.int64)
    starts = np.cumsum(counts) - counts
    source.read_into(
        np.array(sequences, np.int64), np.zeros(len(counts), np.int64), counts, out, starts
    )
    return out
