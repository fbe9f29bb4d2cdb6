"""Checks of what `ShardedBatches` is given, and their texts."""

from collections.abc import Sequence

import jax
import numpy as np

from coredata.sampling import BatchSizeRampUp
from coredata.sampling.checks import whole_number
from coredata_jax.layout import BatchLayout


def as_axes(axes: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    return (axes,) if isinstance(axes, str) else tuple(axes)


def as_integer_dtype(name: str) -> np.dtype:
    """The dtype of a name.

    Raises:
        ValueError: it is neither "int32" nor "int64", or the latter where arrays cannot have it.
    """
    if name not in ("int32", "int64"):
        raise ValueError(f'integer_dtype: got {name!r}, need "int32" or "int64"')
    if jax.dtypes.canonicalize_dtype(name) != name:
        raise ValueError(
            'integer_dtype: JAX makes 32-bit arrays of "int64" unless it is told otherwise. Call '
            'jax.config.update("jax_enable_x64", True) first, or give "int32"'
        )
    return np.dtype(name)


def check_rows(
    global_batch_size: int | BatchSizeRampUp, layout: BatchLayout
) -> int | BatchSizeRampUp:
    """The size, of which every shard must get the same number of rows.

    Raises:
        ValueError: it does not divide; the text names a size that does.
        TypeError: it is no integer.
    """
    shards = layout.row_shards
    if isinstance(global_batch_size, BatchSizeRampUp):
        ramp = global_batch_size
        # If the first two sizes are multiples, so are all the others.
        second = ramp.start_batch_size + (ramp.increment if ramp.increments else 0)
        sizes = [ramp.start_batch_size, second]
    else:
        global_batch_size = whole_number("global_batch_size", global_batch_size, shards)
        sizes = [global_batch_size]
    for size in sizes:
        if size < 1 or size % shards:
            fits = max(round(size / shards), 1) * shards
            axes = " x ".join(f"{axis}={layout.mesh.shape[axis]}" for axis in layout.data_axes)
            raise ValueError(
                f"global_batch_size: {size} rows cannot be split evenly over {shards} shards "
                f"(data_axes: {axes or 'none'}). {fits} would work"
            )
    return global_batch_size
