"""Settings of datasets of conversations and of samples of varying length."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coredata.datasets.config import check_whole_number
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.special_ids import read_attribute
from coredata.storage import read_bytes
from coredata.varlen import MockLengths, alignment

_LOSSLESS = ("count", "refuse")
_MEANINGLESS = ("inter_document_masking", "segment_ids")


@dataclass(frozen=True)
class SFTDatasetConfig(GPTDatasetConfig):
    """Settings of `SFTDataset`: those of `GPTDatasetConfig`, and what conversations need.

    Fields carry the reference's names; `skip_bad_rows` and `samples_without_loss` are not in it.
    `blend` and `blend_per_split` name files of rows (or `owner/repo` on the Hub) instead of
    prefixes. `tokenizer` turns messages into tokens (see `ConversationTokenizer`). The sizes of
    context, sequence and data parallelism decide to what multiple sequences are padded. What
    `GPTDatasetConfig` says about resets, attention masks and partial samples means nothing here.

    Raises:
        ValueError: a field out of range; the text names it and a value that would work.
    """

    dynamic_context_parallel: bool = False
    """The context-parallel size may change from batch to batch, up to all data-parallel ranks;
    the same as `hybrid_context_parallel`."""

    sft_mock_dataset_config_json: str | None = None
    """Options of made-up packs (see `MockLengths`): JSON text, or the path of a file of it."""

    skip_bad_rows: bool = False
    """Leave out and count lines that are no JSON objects, instead of an error."""

    samples_without_loss: str = "count"
    """What becomes of a sample in which no token of its row bears loss, because the row has no
    answer or the limit on length cut it off: "count" it, or "refuse" it with an error."""

    def __post_init__(self) -> None:
        """Check all fields."""
        super().__post_init__()
        check_whole_number("sequence_length", self.sequence_length, 2)
        if self.samples_without_loss not in _LOSSLESS:
            raise ValueError(
                f'samples_without_loss: got {self.samples_without_loss!r}, need "count" or "refuse"'
            )
        for name in _MEANINGLESS:
            if getattr(self, name):
                raise ValueError(
                    f"{name}: it is on, but samples of conversations have their own boundaries. "
                    f"Set {name}=False"
                )
        if read_attribute(self.tokenizer, "eod") is None:
            raise ValueError(
                f"tokenizer: {type(self.tokenizer).__name__} has no end-of-document id (eod), "
                "which ends samples and pads them if there is no pad. Give it one, such as "
                "eod='<|endoftext|>'"
            )

    @property
    def eod(self) -> int:
        """Id that ends a sample."""
        return int(read_attribute(self.tokenizer, "eod"))

    @property
    def pad(self) -> int:
        """Id that pads: the tokenizer's, or if it has none, `eod`."""
        pad = read_attribute(self.tokenizer, "pad")
        return self.eod if pad is None else int(pad)

    @property
    def multiple(self) -> int:
        """What padded lengths are multiples of."""
        return alignment(
            self.context_parallel_size or 1,
            self.sequence_parallel_size,
            self.data_parallel_size,
            dynamic_context_parallel=self.dynamic_context_parallel or self.hybrid_context_parallel,
        )

    def mock_lengths(self) -> MockLengths:
        """Options of made-up samples, with defaults for this sequence length.

        Raises:
            ValueError: no JSON object, or an option out of range.
            FileNotFoundError: neither JSON text nor a file.
        """
        name = "sft_mock_dataset_config_json"
        return read_mock_lengths(name, self.sft_mock_dataset_config_json, self.sequence_length)


@dataclass(frozen=True)
class VarlenDatasetConfig(SFTDatasetConfig):
    """Settings of `VarlenDataset`: those of `SFTDatasetConfig`, and two more.

    Raises:
        ValueError: a field out of range; the text names it and a value that would work.
    """

    varlen_mock_dataset_config_json: str | None = None
    """Options of made-up samples (see `MockLengths`): JSON text, or the path of a file of it."""

    varlen_sbhd_validation: bool = False
    """Pad every sample to S instead, so that results of packed training can be held to those of
    plain batches. Not with made-up data."""

    def mock_lengths(self) -> MockLengths:
        """Options of made-up samples, with defaults for this sequence length.

        Raises:
            ValueError: no JSON object, or an option out of range.
            FileNotFoundError: neither JSON text nor a file.
        """
        name = "varlen_mock_dataset_config_json"
        return read_mock_lengths(name, self.varlen_mock_dataset_config_json, self.sequence_length)


def read_mock_lengths(name: str, given: str | None, sequence_length: int) -> MockLengths:
    """Options of made-up samples from a field called `name`: JSON text or a path.

    Raises:
        ValueError: no JSON object, or an option out of range.
        FileNotFoundError: neither JSON text nor a file.
    """
    if given is None:
        return MockLengths.of(None, sequence_length)
    text = given if given.lstrip().startswith("{") else read_bytes(given).decode("utf-8")
    try:
        options: Any = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}, in {text[:80]!r}; need a JSON object") from error
    if not isinstance(options, Mapping):
        raise ValueError(f'{name}: got {text[:80]!r}, need an object, such as {{"mode": "file"}}')
    try:
        return MockLengths.of(options, sequence_length)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
