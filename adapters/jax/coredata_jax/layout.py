"""Who holds what: the rows and columns of a global batch, over the devices of a mesh."""

import math
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from coredata._typing import Int64


@dataclass(frozen=True)
class DeviceShare:
    """What one device holds: one shard of the rows and one of the columns, by number."""

    device: jax.Device
    row_shard: int
    column_shard: int


@dataclass(frozen=True)
class BatchLayout:
    """How a batch lies on a mesh: rows over `data_axes`, columns over `sequence_axis`.

    Over every other axis of the mesh the batch is repeated.

    Raises:
        ValueError: an axis that the mesh lacks or that is given twice, or a process none of whose
            devices is in the mesh.
    """

    mesh: Mesh
    data_axes: tuple[str, ...]
    sequence_axis: str | None

    def __post_init__(self) -> None:
        sizes = ", ".join(f"{axis}={size}" for axis, size in self.mesh.shape.items())
        used = [*self.data_axes, *([] if self.sequence_axis is None else [self.sequence_axis])]
        for number, axis in enumerate(used):
            field = "data_axes" if number < len(self.data_axes) else "sequence_axis"
            if axis not in self.mesh.shape:
                raise ValueError(
                    f"{field}: the mesh has no axis {axis!r}; its axes are {sizes}. "
                    f"Give one of these, or a mesh made with an axis {axis!r}"
                )
            if axis in used[:number]:
                raise ValueError(
                    f"{field}: axis {axis!r} is given twice; rows and columns are split over "
                    f"different axes. The axes of the mesh are {sizes}"
                )
        if not self.shares:
            raise ValueError(
                f"mesh: none of its {self.mesh.size} devices belongs to process "
                f"{jax.process_index()}. Read batches only in processes with a device in the mesh"
            )

    @cached_property
    def row_shards(self) -> int:
        """Into how many parts the rows are split; a global batch is a multiple of it."""
        return math.prod(self.mesh.shape[axis] for axis in self.data_axes)

    @cached_property
    def column_shards(self) -> int:
        """Into how many parts the sequence is split."""
        return 1 if self.sequence_axis is None else self.mesh.shape[self.sequence_axis]

    @cached_property
    def row_sharding(self) -> NamedSharding:
        """Of fields without a sequence axis: rows split, everything else repeated."""
        return NamedSharding(self.mesh, PartitionSpec(self._rows()))

    @cached_property
    def sequence_sharding(self) -> NamedSharding:
        """Of fields whose second axis is the sequence."""
        if self.sequence_axis is None:
            return self.row_sharding
        return NamedSharding(self.mesh, PartitionSpec(self._rows(), self.sequence_axis))

    @cached_property
    def shares(self) -> tuple[DeviceShare, ...]:
        """What each device of this process holds."""
        shape = (self.row_shards, self.column_shards)
        shards = self.sequence_sharding.addressable_devices_indices_map(shape)
        return tuple(
            DeviceShare(device, index[0].indices(shape[0])[0], index[1].indices(shape[1])[0])
            for device, index in shards.items()
            if index is not None
        )

    @cached_property
    def on_cpu(self) -> bool:
        """Whether the memory of devices is this process's own."""
        return any(share.device.platform == "cpu" for share in self.shares)

    @cached_property
    def local_row_shards(self) -> tuple[int, ...]:
        """The row shards that this process needs, each once, in rising order."""
        return tuple(sorted({share.row_shard for share in self.shares}))

    @cached_property
    def local_column_shards(self) -> tuple[int, ...]:
        """The column shards that this process needs, each once, in rising order."""
        return tuple(sorted({share.column_shard for share in self.shares}))

    def local_rows(self, rows: int) -> Int64[np.ndarray, " local"]:
        """Which of the rows of a global batch this process reads."""
        return _members(self.local_row_shards, rows // self.row_shards)

    def local_columns(self, columns: int) -> Int64[np.ndarray, " local"]:
        """Which places of the sequence this process keeps."""
        return _members(self.local_column_shards, columns // self.column_shards)

    def _rows(self) -> str | tuple[str, ...] | None:
        return self.data_axes[0] if len(self.data_axes) == 1 else self.data_axes or None


def _members(shards: tuple[int, ...], size: int) -> Int64[np.ndarray, " local"]:
    """The numbers in shards of this size, shard after shard."""
    starts = np.array(shards, np.int64)[:, None] * size
    return (starts + np.arange(size, dtype=np.int64)).reshape(-1)
