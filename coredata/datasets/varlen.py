"""Rows of conversations or text as samples of their own length, for packing."""

from collections.abc import Sequence
from typing import final

import numpy as np

from coredata._typing import Int64, Integer, Shaped
from coredata.datasets.protocol import Sample
from coredata.datasets.rows import Conversations, ItemSource, open_conversations
from coredata.datasets.rows_dataset import FIELDS, RowDataset
from coredata.datasets.rows_tokens import item_tokens
from coredata.datasets.sample_numbers import sample_numbers
from coredata.datasets.sft_config import VarlenDatasetConfig
from coredata.indices import Split
from coredata.varlen import LossFacts, align, fixed_sample, limit_tokens, single_sample


@final
class VarlenDataset(RowDataset):
    """Sample i is row `indices[i mod len(indices)]`: messages or text, at most S + 1 tokens.

    See `coredata.varlen.limit_tokens` and `single_sample` for the fields. In a batch, `tokens`,
    `labels`, `loss_mask` and `position_ids` are arrays of objects, one array a sample;
    `pack_samples(unstack_samples(batch))` lays them end to end. With `varlen_sbhd_validation`
    samples are padded to S (`fixed_sample`) and stacked instead.

    Args:
        source: messages or text by row, such as what `build_low_level_dataset` gives.
        dataset_path: the file they are from, for identity and errors; None if none.
        indices: the rows that this split exposes.
        num_samples: samples, repeating rows as needed; None for one of each row.
        index_split: which split it is.
        config: everything else.

    Raises:
        ValueError: samples asked of no rows.
    """

    config: VarlenDatasetConfig

    def __init__(
        self,
        source: ItemSource,
        dataset_path: str | None,
        indices: Integer[np.ndarray, " rows"],
        num_samples: int | None,
        index_split: Split,
        config: VarlenDatasetConfig,
    ) -> None:
        super().__init__(source, dataset_path, indices, num_samples, index_split, config)

    @staticmethod
    def build_low_level_dataset(
        dataset_path: str | None, config: VarlenDatasetConfig
    ) -> Conversations:
        """Open the rows of a file, or of `owner/repo` on the Hub.

        Raises:
            ValueError: no path, no schema that fits its columns, or a bad line.
            FileNotFoundError: no such file.
        """
        if dataset_path is None:
            raise ValueError(
                "blend: got None, but VarlenDataset reads files. Give it blend and split, or "
                "blend_per_split; or build MockVarlenDataset for made-up data"
            )
        return open_conversations(dataset_path, config)

    @property
    def lengths(self) -> "RowLengths":
        """Padded lengths of samples by number, for `coredata.varlen.PackWindows`."""
        return RowLengths(self)

    def padded_lengths(
        self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]
    ) -> Int64[np.ndarray, " batch"]:
        """Tokens of some samples, padding included. The rows are read and tokenised for it."""
        samples = sample_numbers(indices, len(self), self.name).samples.tolist()
        found = (self._make(sample)[0]["tokens"] for sample in samples)
        return np.fromiter(map(len, found), np.int64, len(samples))

    @property
    def ragged(self) -> frozenset[str]:
        """Fields with one entry per token, unless samples are padded to S."""
        return frozenset() if self.config.varlen_sbhd_validation else FIELDS

    def _sample(self, row: int) -> tuple[Sample, LossFacts]:
        config = self.config
        tokenized = item_tokens(self.dataset[row], config.tokenizer, self.dataset.where(row))
        limited, facts = limit_tokens(tokenized, config.sequence_length, config.eod)
        if config.varlen_sbhd_validation:
            return fixed_sample(limited, config.sequence_length, config.pad), facts
        return single_sample(limited, config.multiple, config.pad), facts


@final
class RowLengths:
    """Lengths of the samples of a `VarlenDataset`; a slice gives an array."""

    def __init__(self, dataset: VarlenDataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, samples: slice) -> Int64[np.ndarray, " samples"]:
        numbers = np.arange(*samples.indices(len(self)), dtype=np.int64)
        return self._dataset.padded_lengths(numbers)


def longest_sample(config: VarlenDatasetConfig) -> int:
    """The most tokens that a sample can have, padding included: what a pack must have room for.

    A row of exactly S + 1 tokens gets an end token, so it is one longer than S.
    """
    return align(config.sequence_length + 1, config.multiple)
