"""Rows of conversations as packs of fixed length, for supervised fine-tuning."""

from typing import final

import numpy as np

from coredata._typing import Integer
from coredata.datasets.protocol import Sample
from coredata.datasets.rows import Conversations, ItemSource, open_chats
from coredata.datasets.rows_dataset import RowDataset
from coredata.datasets.rows_tokens import (
    item_tokens,
    require_conversation_tokenizer,
    row_conversations,
)
from coredata.datasets.sft_config import SFTDatasetConfig
from coredata.datasets.special_ids import read_attribute
from coredata.indices import Split
from coredata.varlen import LossFacts, pack_conversations


@final
class SFTDataset(RowDataset):
    """Sample i is row `indices[i mod len(indices)]`, cut into conversations at system messages.

    The conversations are laid end to end, padded and cut to S tokens: see
    `coredata.varlen.pack_conversations` for the fields. A row's messages reach the tokenizer with
    all their keys.

    Args:
        source: messages by row, such as what `build_low_level_dataset` gives.
        dataset_path: the file they are from, for identity and errors; None if none.
        indices: the rows that this split exposes.
        num_samples: samples, repeating rows as needed; None for one of each row.
        index_split: which split it is.
        config: everything else.

    Raises:
        ValueError: samples asked of no rows, or a tokenizer that cannot write conversations.
    """

    def __init__(
        self,
        source: ItemSource,
        dataset_path: str | None,
        indices: Integer[np.ndarray, " rows"],
        num_samples: int | None,
        index_split: Split,
        config: SFTDatasetConfig,
    ) -> None:
        require_conversation_tokenizer(config.tokenizer)
        super().__init__(source, dataset_path, indices, num_samples, index_split, config)

    @staticmethod
    def build_low_level_dataset(
        dataset_path: str | None, config: SFTDatasetConfig
    ) -> Conversations:
        """Open the rows of a file, or of `owner/repo` on the Hub.

        Raises:
            ValueError: no path, no conversations in it, or a bad line.
            FileNotFoundError: no such file.
        """
        if dataset_path is None:
            raise ValueError(
                "blend: got None, but SFTDataset reads files. Give it blend and split, or "
                "blend_per_split; or build MockSFTDataset for made-up data"
            )
        return open_chats(dataset_path, config)

    @property
    def ragged(self) -> frozenset[str]:
        """None: all samples have one shape."""
        return frozenset()

    def _sample(self, row: int) -> tuple[Sample, LossFacts]:
        config = self.config
        where = self.dataset.where(row)
        conversations = row_conversations(self.dataset, row)
        return pack_conversations(
            (item_tokens(conversation, config.tokenizer, where) for conversation in conversations),
            config.sequence_length,
            config.multiple,
            config.pad,
            pad_counts=_pad_also_ends(config),
        )


def _pad_also_ends(config: SFTDatasetConfig) -> bool:
    """Whether the id that pads is one that a model shall learn to say."""
    ends = {config.eod, read_attribute(config.tokenizer, "eos")}
    return config.pad in ends and not config.allow_ambiguous_pad_tokens
