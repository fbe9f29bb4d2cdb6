"""From the arrays of one process to global arrays."""

from collections.abc import Mapping

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
    pieces = []
    for share in layout.shares:
        row = layout.local_row_shards.index(share.row_shard) * height
        piece = array[row : row + height]
        if split_columns:
            column = layout.local_column_shards.index(share.column_shard) * width
            piece = piece[:, column : column + width]
        # A CPU "device" takes an aligned array over as it is: two devices that hold the same rows
        # would share one buffer, which a donation to either would overwrite.
        pieces.append(piece.copy() if share.device.platform == "cpu" else piece)
    placed = jax.device_put(pieces, [share.device for share in layout.shares])
    sharding = layout.sequence_sharding if split_columns else layout.row_sharding
    return jax.make_array_from_single_device_arrays(tuple(shape), sharding, placed)
