"""From the arrays of one process to global arrays."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from coredata_jax.layout import BatchLayout

GlobalBatch = dict[str, jax.Array]
"""Field name -> global array."""


def place(
    batch: Mapping[str, np.ndarray], layout: BatchLayout, sequence_fields: tuple[str, ...]
) -> GlobalBatch:
    """Put what this process holds of a batch on its devices; nothing waits and nothing is sent.

    No array on a device shares memory with another or with `batch`, so each may be donated.

    Args:
        batch: the rows of `layout.local_rows`, and of `sequence_fields` the columns of
            `layout.local_columns`, in that order.
        layout: where they go.
        sequence_fields: fields whose second axis is split.
    """
    return {
        name: _place(array, layout, name in sequence_fields and array.ndim > 1)
        for name, array in batch.items()
    }


def _place(array: np.ndarray, layout: BatchLayout, split_columns: bool) -> jax.Array:
    height = len(array) // len(layout.local_row_shards)
    shape = [height * layout.row_shards, *array.shape[1:]]
    width = 0
    if split_columns:
        width = shape[1] // len(layout.local_column_shards)
        shape[1] = width * layout.column_shards
    sharding = layout.sequence_sharding if split_columns else layout.row_sharding

    def piece(index: Any) -> np.ndarray:
        row = index[0].indices(shape[0])[0] // max(height, 1)
        first = layout.local_row_shards.index(row) * height
        part = array[first : first + height]
        if split_columns:
            column = index[1].indices(shape[1])[0] // max(width, 1)
            first = layout.local_column_shards.index(column) * width
            part = part[:, first : first + width]
        # A CPU "device" takes an aligned array over as it is: two devices that hold the same rows
        # would share one buffer, which a donation to either would overwrite.
        return part.copy() if layout.on_cpu else part

    if not sharding.is_fully_replicated or len(layout.shares) == 1:
        return jax.make_array_from_callback(tuple(shape), sharding, piece)
    # It would ask for one piece for all devices, for the reason above one too few.
    whole = (slice(None),) * array.ndim
    pieces = [piece(whole) for _ in layout.shares]
    placed = jax.device_put(pieces, [share.device for share in layout.shares])
    return jax.make_array_from_single_device_arrays(tuple(shape), sharding, placed)
