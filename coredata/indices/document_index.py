"""The document index: the documents of all epochs, shuffled."""

import numpy as np

from coredata._typing import Integer, UInt32
from coredata.indices.mt19937 import shuffle_in_place

_INT32_MAX = 2**31 - 1


def document_index_dtype(entries: int, largest_document: int) -> np.dtype:
    """int32, unless there are more entries, or higher document numbers, than it can count."""
    fits = entries <= _INT32_MAX and largest_document <= _INT32_MAX
    return np.dtype(np.int32 if fits else np.int64)


def build_document_index(
    documents: Integer[np.ndarray, " documents"],
    epochs: int,
    state: UInt32[np.ndarray, "625"],
    separate_final_epoch: bool,
) -> Integer[np.ndarray, " entries"]:
    """Repeat `documents` once per epoch and shuffle, moving the generator `state` on.

    All epochs are shuffled as one array, or, with `separate_final_epoch`, the last one by itself.
    """
    largest = int(documents.max(initial=0))
    dtype = document_index_dtype(epochs * documents.size, largest)
    index = np.empty(epochs * documents.size, dtype)
    index.reshape(epochs, documents.size)[:] = documents
    if separate_final_epoch and epochs > 1:
        first = (epochs - 1) * documents.size
        shuffle_in_place(index[:first], state)
        shuffle_in_place(index[first:], state)
    else:
        shuffle_in_place(index, state)
    return index
