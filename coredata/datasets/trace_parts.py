"""Which parts of a file the samples of one dataset are made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Int64
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.masked import MaskedWordPieceDataset
from coredata.datasets.rows_dataset import RowDataset

NO_DATASET = -1
"""Stands for the number of a dataset where there is no blend."""

WHOLE = -1
"""Stands for the length of a row, which is text until it is read."""


@dataclass(frozen=True, eq=False)
class LeafParts:
    """Parts of samples, in reading order: place of the sample among those asked, and what."""

    rows: Int64[np.ndarray, " parts"]
    sequences: Int64[np.ndarray, " parts"]
    offsets: Int64[np.ndarray, " parts"]
    lengths: Int64[np.ndarray, " parts"]


def leaf_parts(dataset: Any, samples: Int64[np.ndarray, " batch"]) -> LeafParts:
    """The parts of `samples` of a dataset that is no blend.

    Raises:
        TypeError: a dataset of a kind that is not known here.
    """
    if isinstance(dataset, GPTDataset):
        spans = dataset.order.spans(samples)
        rows = np.repeat(np.arange(len(samples)), np.diff(spans.row_splits))
        return LeafParts(rows, spans.sequences, spans.offsets, spans.lengths)
    if isinstance(dataset, RowDataset):
        sources = dataset.indices[samples % max(len(dataset.indices), 1)].astype(np.int64)
        whole = np.full(len(samples), WHOLE, np.int64)
        return LeafParts(np.arange(len(samples)), sources, np.zeros_like(sources), whole)
    if isinstance(dataset, MaskedWordPieceDataset):
        bounds = dataset.sample_index[samples].astype(np.int64)
        counts = bounds[:, 1] - bounds[:, 0]
        rows = np.repeat(np.arange(len(samples)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        sentences = bounds[rows, 0] + np.arange(len(rows)) - before
        lengths = dataset.dataset.sequence_lengths[sentences].astype(np.int64)
        return LeafParts(rows, sentences, np.zeros_like(sentences), lengths)
    raise TypeError(_unknown(dataset))


def _unknown(dataset: Any) -> str:
    return (
        f"a {type(dataset).__name__} cannot be traced; give a GPTDataset, a dataset of rows or of "
        "sentences, a BlendedDataset of such, or WithoutSamples of one of these"
    )
