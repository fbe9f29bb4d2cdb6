"""The shuffle index: in which order the samples are read."""

import numpy as np

from coredata._typing import Integer, UInt32
from coredata.indices.mt19937 import shuffle_in_place


def shuffle_index_dtype(samples: int) -> np.dtype:
    """uint32, or int64 from 2^32 - 2 samples on (Megatron-LM's limit)."""
    return np.dtype(np.uint32 if samples < 2**32 - 2 else np.int64)


def build_shuffle_index(
    samples_before: int, samples: int, state: UInt32[np.ndarray, "625"]
) -> Integer[np.ndarray, " samples"]:
    """Shuffle 0 … samples_before-1, then samples_before … samples-1, moving `state` on.

    Where the last epoch is not separate, `samples_before` is `samples`: one shuffle of all.

    Raises:
        ValueError: `samples_before` is not within 0 … samples.
    """
    if not 0 <= samples_before <= samples:
        raise ValueError(
            f"samples_before: {samples_before} is outside 0 … {samples}. "
            f"Pass {samples} to shuffle all samples together"
        )
    index = np.arange(samples, dtype=shuffle_index_dtype(samples))
    shuffle_in_place(index[:samples_before], state)
    shuffle_in_place(index[samples_before:], state)
    return index
