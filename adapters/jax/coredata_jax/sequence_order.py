"""The order of tokens in which causal attention costs all devices of a sequence axis the same."""

from dataclasses import dataclass

import numpy as np

from coredata._typing import Int64
from coredata.varlen import context_parallel_partition, inverse_partition


@dataclass(frozen=True)
class SequenceOrder:
    """A permutation of the places of a sequence, and the way back.

    Attributes:
        positions: place j of the reordered sequence holds token `positions[j]`: reorder with
            `x[:, positions]`. It is also what a causal mask compares.
        inverse: back to the text's order with `y[:, inverse]`.
    """

    positions: Int64[np.ndarray, " sequence"]
    inverse: Int64[np.ndarray, " sequence"]


def load_balanced_order(sequence_length: int, context_parallel_size: int) -> SequenceOrder:
    """Chunks r and 2 · size − 1 − r of 2 · size equal chunks for device r, device after device.

    An early chunk sees little and its late partner much, so the work is even. With one device the
    order stays as it is.

    Raises:
        ValueError: a sequence that 2 · size does not divide; the text has a length that works.
    """
    bounds = np.array([0, sequence_length], np.int64)
    partition = context_parallel_partition(bounds, context_parallel_size)
    return SequenceOrder(partition.reshape(-1), inverse_partition(partition))
