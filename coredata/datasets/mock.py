"""Data made up on the spot, the same everywhere: for benchmarks and first runs."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int64, Integer
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.sources import check_spans
from coredata.datasets.special_ids import read_attribute
from coredata.indices import Split


class MockGPTLowLevelDataset:
    """100,000 documents that count 1, 2, 3, … modulo the vocabulary, each with an end token.

    Lengths are drawn from 1 to 4,095 with numpy's default generator and seed 0, as in the
    reference. Nothing is stored but the lengths.

    Args:
        tokenizer: its `vocab_size` and `eod` are used.

    Raises:
        ValueError: a tokenizer without one of them.
    """

    seed: ClassVar[int] = 0
    size: ClassVar[int] = 100000
    max_sequence_length: ClassVar[int] = 4096

    def __init__(self, tokenizer: Any) -> None:
        vocab_size = read_attribute(tokenizer, "vocab_size")
        eod = read_attribute(tokenizer, "eod")
        if not vocab_size or eod is None:
            raise ValueError(
                f"tokenizer: mock data need a vocab_size and an eod; {type(tokenizer).__name__} "
                f"has {vocab_size} and {eod}. coredata.text.NullTokenizer(50256) would do"
            )
        self.__setstate__((int(vocab_size), int(eod)))

    def __getstate__(self) -> tuple[int, int]:
        """Lengths are drawn again where they arrive."""
        return self.vocab_size, self.eod_token

    def __setstate__(self, state: tuple[int, int]) -> None:
        self.vocab_size, self.eod_token = state
        self.sequence_lengths = np.random.default_rng(seed=self.seed).integers(
            low=1, high=self.max_sequence_length, size=self.size, dtype=np.int32
        )

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, sequence: int) -> Int64[np.ndarray, " tokens"]:
        """Tokens of one document."""
        return self.get(sequence)

    def get(
        self, sequence: int, offset: int = 0, length: int | None = None
    ) -> Int64[np.ndarray, " tokens"]:
        """Tokens of one document from `offset` on; all of the rest if `length` is None."""
        if length is None:
            length = int(self.sequence_lengths[sequence]) - offset
        out = np.empty(max(length, 0), np.int64)
        one = [np.array([value], np.int64) for value in (sequence, offset, length, 0)]
        self.read_into(one[0], one[1], one[2], out, one[3])
        return out

    def read_into(
        self,
        sequences: Int64[np.ndarray, " spans"],
        offsets: Int64[np.ndarray, " spans"],
        lengths: Int64[np.ndarray, " spans"],
        out: Integer[np.ndarray, " tokens_out"],
        out_offsets: Int64[np.ndarray, " spans"],
    ) -> None:
        """Make the tokens of ranges of documents; see `TokenSource`."""
        check_spans(
            "mock data", self.sequence_lengths, sequences, offsets, lengths, out, out_offsets
        )
        ends = self.sequence_lengths[sequences].astype(np.int64) - 1
        _count(ends, offsets, lengths, self.vocab_size, self.eod_token, out, out_offsets)

    def identity(self) -> Mapping[str, Any]:
        """Name, counts, dtype, and what the tokens follow from."""
        return {
            "name": "mock",
            "sequences": self.size,
            "documents": self.size,
            "tokens": int(self.sequence_lengths.sum(dtype=np.int64)),
            "dtype": "int32",
            "vocab_size": self.vocab_size,
            "eod": self.eod_token,
        }


class MockGPTDataset(GPTDataset):
    """GPT samples of mock data. The path and its cache directory beside it mean nothing here.

    Raises:
        ValueError: a configuration with a blend.
    """

    def __init__(
        self,
        dataset: MockGPTLowLevelDataset,
        dataset_path: str | None,
        indices: Integer[np.ndarray, " documents"],
        num_samples: int | None,
        index_split: Split,
        config: GPTDatasetConfig,
    ) -> None:
        if not config.mock:
            raise ValueError(
                "config: it names data (blend or blend_per_split), but MockGPTDataset makes its "
                "own. Use GPTDataset, or a configuration without a blend"
            )
        super().__init__(dataset, dataset_path, indices, num_samples, index_split, config)

    @staticmethod
    def build_low_level_dataset(
        dataset_path: str | None, config: GPTDatasetConfig
    ) -> MockGPTLowLevelDataset:
        """The mock documents; the path means nothing."""
        return MockGPTLowLevelDataset(config.tokenizer)


@kernel
def _count(ends, offsets, lengths, vocab_size, eod, out, out_offsets):
    for span in range(len(ends)):
        to = out_offsets[span]
        counted = max(min(lengths[span], ends[span] - offsets[span]), np.int64(0))
        token = (offsets[span] + 1) % vocab_size
        for i in range(counted):
            out[to + i] = token
            token += 1
            if token == vocab_size:
                token = np.int64(0)
        for i in range(counted, lengths[span]):
            out[to + i] = eod
