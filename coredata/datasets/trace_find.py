"""Which samples of one dataset hold tokens of given sequences of its file."""

from typing import Any

import numpy as np

from coredata._typing import Int64
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.masked import MaskedWordPieceDataset
from coredata.datasets.rows_dataset import RowDataset
from coredata.datasets.trace_parts import leaf_parts
from coredata.datasets.trace_search import count_up_to, places_of
from coredata.formats import IndexedDataset
from coredata.indices import IndexedOrder

_BLOCK = 1 << 16


def sequences_of(dataset: Any, document: int) -> tuple[int, int]:
    """First sequence of a document, and the one after its last.

    Raises:
        IndexError: no such document.
    """
    source = dataset.dataset
    boundaries = source.document_indices if isinstance(source, IndexedDataset) else None
    count = len(source) if boundaries is None else len(boundaries) - 1
    if not 0 <= document < count:
        numbered = f"{count}, numbered 0 to {count - 1}" if count else "none"
        raise IndexError(
            f"document {document} was asked of {dataset.dataset_path or 'unnamed data'}, which "
            f"has {numbered}"
        )
    if boundaries is None:
        return document, document + 1
    return int(boundaries[document]), int(boundaries[document + 1])


def document_numbers(dataset: Any, sequences: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """The document of each sequence (of rows, the row)."""
    source = dataset.dataset
    if not isinstance(source, IndexedDataset):
        return sequences
    return count_up_to(source.document_indices, sequences) - 1


def samples_of_sequences(dataset: Any, first: int, end: int) -> Int64[np.ndarray, " samples"]:
    """The samples, in rising order, that hold tokens of any sequence from `first` up to `end`.

    The index arrays are searched: one compiled pass over the document index and one over the
    shuffle index, binary search in the sample index between them. Orders without such arrays are
    asked for the spans of all samples, block by block.

    Raises:
        TypeError: a dataset of a kind that is not known here.
    """
    if isinstance(dataset, RowDataset):
        return _of_rows(dataset, first, end)
    if isinstance(dataset, GPTDataset) and isinstance(dataset.order, IndexedOrder):
        candidates = _candidates(dataset.order, first, end)
    elif isinstance(dataset, MaskedWordPieceDataset):
        table = dataset.sample_index
        return np.flatnonzero((table[:, 0] < end) & (table[:, 1] > first)).astype(np.int64)
    else:
        candidates = np.arange(len(dataset), dtype=np.int64)
    found = [np.empty(0, np.int64)]
    for begin in range(0, len(candidates), _BLOCK):
        block = candidates[begin : begin + _BLOCK]
        parts = leaf_parts(dataset, block)
        hit = (parts.sequences >= first) & (parts.sequences < end)
        found.append(np.unique(block[parts.rows[hit]]))
    return np.concatenate(found)


def _candidates(order: IndexedOrder, first: int, end: int) -> np.ndarray:
    """Samples whose rows of the sample index reach over an entry with one of the sequences.

    They may include a neighbour that only ends, or begins, where such an entry does.
    """
    indices = order.indices
    entries = places_of(indices.document_index, np.arange(first, end, dtype=np.int64))
    starts = indices.sample_index[:, 0]
    rows = len(starts) - 1
    # The last row that starts before the entry may reach into it; so do those that start in it.
    low = np.maximum(count_up_to(starts, entries - 1) - 1, 0)
    high = np.minimum(count_up_to(starts, entries), rows)
    counts = np.maximum(high - low, 0)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    touched = np.repeat(low, counts) + np.arange(len(before)) - before
    return places_of(indices.shuffle_index, np.unique(touched))


def _of_rows(dataset: RowDataset, first: int, end: int) -> np.ndarray:
    """Sample i is row `indices[i mod len(indices)]`."""
    places = np.flatnonzero((dataset.indices >= first) & (dataset.indices < end))
    rounds = np.arange(-(-len(dataset) // max(len(dataset.indices), 1)))
    samples = (rounds[:, None] * len(dataset.indices) + places).reshape(-1)
    return np.sort(samples[samples < len(dataset)]).astype(np.int64)
