"""The three indices of a GPT dataset, built together from one stream of random numbers."""

from dataclasses import dataclass

import numpy as np

from coredata._typing import Integer
from coredata.indices.document_index import build_document_index
from coredata.indices.epochs import SEPARATE_FINAL_EPOCH_THRESHOLD, plan_epochs
from coredata.indices.mt19937 import mt19937_seed
from coredata.indices.sample_index import build_sample_index
from coredata.indices.shuffle_index import build_shuffle_index

_BLOCK = 1 << 16
"""Documents whose lengths are looked up at once."""


@dataclass(frozen=True, eq=False)
class GPTIndices:
    """Which tokens make sample k, as Megatron-LM stores it."""

    document_index: Integer[np.ndarray, " entries"]
    """The documents of all epochs, shuffled: int32 (int64 past 2^31 - 1 entries)."""
    sample_index: Integer[np.ndarray, "rows 2"]
    """Where each sample starts: (position in document_index, token offset); int32 or int64."""
    shuffle_index: Integer[np.ndarray, " samples"]
    """Sample k of the dataset is row shuffle_index[k]: uint32 (int64 from 2^32 - 2 on)."""


def build_gpt_indices(
    sequence_lengths: Integer[np.ndarray, " sequences"],
    documents: Integer[np.ndarray, " documents"],
    num_samples: int | None,
    sequence_length: int,
    random_seed: int,
    *,
    add_extra_token: bool | int = True,
    drop_last_partial_sequence: bool = True,
    separate_final_epoch_threshold: int | float = SEPARATE_FINAL_EPOCH_THRESHOLD,
    source: str = "the dataset",
) -> GPTIndices:
    """Build document, sample and shuffle index; bit for bit those of Megatron-LM.

    Args:
        sequence_lengths: tokens of each sequence of the file.
        documents: the sequences this split exposes.
        num_samples: samples asked for, or None for one epoch.
        sequence_length: tokens of a sample.
        random_seed: 0 … 2^32 - 1.
        add_extra_token: whether samples see one token more, for the last label.
        drop_last_partial_sequence: False keeps a last sample with fewer tokens (validation).
        separate_final_epoch_threshold: see `final_epoch`.
        source: what is read, for error texts.

    Raises:
        IndexError: a document that the file does not have.
        ValueError: samples asked of a source without tokens; a seed, a number of samples or a
            sequence length out of range.
    """
    state = mt19937_seed(random_seed)
    plan = plan_epochs(
        tokens_per_epoch(sequence_lengths, documents),
        num_samples,
        sequence_length,
        add_extra_token,
        drop_last=drop_last_partial_sequence,
        separate_final_epoch_threshold=separate_final_epoch_threshold,
        source=f"{source} ({documents.size} documents)",
    )
    separate = plan.final_epoch.separate
    document_index = build_document_index(documents, plan.epochs, state, separate)
    sample_index = build_sample_index(
        sequence_lengths, document_index, sequence_length, plan.samples, add_extra_token
    )
    first = plan.final_epoch.samples_before if separate else plan.samples
    return GPTIndices(document_index, sample_index, build_shuffle_index(first, plan.samples, state))


def tokens_per_epoch(
    sequence_lengths: Integer[np.ndarray, " sequences"],
    documents: Integer[np.ndarray, " documents"],
) -> int:
    """Tokens of all `documents` together, summed in 64 bits.

    Raises:
        IndexError: a document that the file does not have.
    """
    try:
        if documents.size and np.minimum.reduce(documents) < 0:
            raise IndexError
        # Most often one block; a builder asks it of thousands of splits.
        return sum(
            int(np.add.reduce(sequence_lengths[documents[first : first + _BLOCK]], dtype=np.int64))
            for first in range(0, documents.size, _BLOCK)
        )
    except IndexError:
        wrong = documents[(documents < 0) | (documents >= sequence_lengths.size)][0]
        raise IndexError(
            f"documents: there is no document {wrong} in a file of {sequence_lengths.size} "
            f"sequences; they are numbered 0 … {sequence_lengths.size - 1}"
        ) from None
