"""What the three index arrays of a GPT dataset follow from, and building them."""

from dataclasses import dataclass

import numpy as np

from coredata._typing import Integer
from coredata.indices import (
    EpochPlan,
    GPTIndices,
    build_gpt_indices,
    plan_epochs,
    tokens_per_epoch,
)


@dataclass(frozen=True)
class GPTIndexPlan:
    """All that the indices of a GPT dataset follow from.

    Attributes:
        sequence_lengths: tokens of each sequence of the source.
        documents: the sequences that the split exposes.
        num_samples: samples asked for, None for one epoch.
        sequence_length: S.
        random_seed: seed of both shuffles.
        add_extra_token: whether a sample sees S + 1 tokens.
        drop_last_partial_sequence: whether a short last sample is left out.
        separate_final_epoch_threshold: see `final_epoch`.
        source: what errors call it.
    """

    sequence_lengths: Integer[np.ndarray, " sequences"]
    documents: Integer[np.ndarray, " documents"]
    num_samples: int | None
    sequence_length: int
    random_seed: int
    add_extra_token: bool
    drop_last_partial_sequence: bool
    separate_final_epoch_threshold: int | float
    source: str

    def counts(self) -> EpochPlan:
        """Epochs and samples, without building anything: one pass over the lengths.

        Raises:
            ValueError: samples asked of documents without tokens.
        """
        return plan_epochs(
            tokens_per_epoch(self.sequence_lengths, self.documents),
            self.num_samples,
            self.sequence_length,
            self.add_extra_token,
            drop_last=self.drop_last_partial_sequence,
            separate_final_epoch_threshold=self.separate_final_epoch_threshold,
            source=self.source,
        )

    def build(self) -> GPTIndices:
        """The three arrays.

        Raises:
            ValueError: samples asked of documents without tokens.
        """
        return build_gpt_indices(
            self.sequence_lengths,
            self.documents,
            self.num_samples,
            self.sequence_length,
            self.random_seed,
            add_extra_token=self.add_extra_token,
            drop_last_partial_sequence=self.drop_last_partial_sequence,
            separate_final_epoch_threshold=self.separate_final_epoch_threshold,
            source=self.source,
        )
