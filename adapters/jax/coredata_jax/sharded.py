"""What all loaders over a mesh share: reading a process's part, sending it, and the position."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from jax.sharding import NamedSharding

from coredata.datasets.protocol import Dataset
from coredata.loading import BatchLoader, Loader
from coredata.sampling import BatchSampler
from coredata.sampling.checks import whole_number
from coredata_jax.checks import as_integer_dtype
from coredata_jax.layout import BatchLayout
from coredata_jax.placing import GlobalBatch, place
from coredata_jax.sequence_order import SequenceOrder, load_balanced_order
from coredata_jax.share import LocalColumns, LocalRows
from coredata_jax.transfer import Transfers, fetch

SEQUENCE_FIELDS = ("tokens", "labels", "loss_mask", "position_ids", "segment_ids")
"""Fields whose second axis is the sequence, as the datasets of coredata name them."""


class ShardedLoader(Loader[GlobalBatch]):
    """Global batches of what a sampler says, as dicts of global `jax.Array`s; abstract.

    Each process reads the rows that its own devices hold, each once, however many of its devices
    hold it, and keeps of them the columns that its devices hold. Processes do not talk to each
    other here; `check_same_plan` lets them, once.

    The arrays share no memory with anything else, so a step may donate them. No thread starts
    before the first `next`; `close`, the end of the samples and an error end them.

    Args:
        dataset: what to read; the same in all processes.
        sampler: the rows of all processes, a global batch at a time.
        layout: who holds what.
        sizes: what else must be the same in all processes, as JSON values.
        load_balanced: put tokens in the order of `load_balanced_order`.
        sequence_fields: fields whose second axis is the sequence.
        integer_dtype: what 64-bit integers become.
        prefetch: batches to keep ready on the host.
        threads: batches read at the same time.
        device_prefetch: batches to keep on the devices beyond the one handed out.

    Raises:
        ValueError: an order along no axis, or a number or dtype that there is not.
    """

    def __init__(
        self,
        dataset: Dataset,
        sampler: BatchSampler,
        layout: BatchLayout,
        sizes: Mapping[str, Any],
        *,
        load_balanced: bool,
        sequence_fields: Sequence[str],
        integer_dtype: str,
        prefetch: int,
        threads: int,
        device_prefetch: int,
    ) -> None:
        if load_balanced and layout.sequence_axis is None:
            raise ValueError(
                "load_balanced: it is an order along sequence_axis, which is None. "
                f"Give one of the mesh's axes {layout.mesh.axis_names}, or load_balanced=False"
            )
        device_prefetch = whole_number("device_prefetch", device_prefetch, 1)
        if device_prefetch < 0:
            raise ValueError(f"device_prefetch is {device_prefetch}, expected 0 or more, such as 1")
        super().__init__(dataset, sampler)
        self.layout = layout
        self.load_balanced = load_balanced
        self.sequence_fields = tuple(sequence_fields)
        self.device_prefetch = device_prefetch
        self._sizes = dict(sizes)
        self._place = partial(place, layout=layout, sequence_fields=self.sequence_fields)
        self._transfers: Transfers | None = None
        dtype = as_integer_dtype(integer_dtype)
        share = LocalColumns(dataset, layout, self.sequence_fields, load_balanced, dtype)
        rows = LocalRows(sampler, layout)
        self._loader = BatchLoader(share, rows, prefetch=prefetch, threads=threads)

    @property
    def sharding(self) -> NamedSharding:
        """That of the fields of the sequence, such as `tokens`: for `jit`'s `in_shardings`."""
        return self.layout.sequence_sharding

    def sequence_order(self, sequence_length: int) -> SequenceOrder:
        """The order in which tokens come along the sequence, and the way back."""
        parts = self.layout.column_shards if self.load_balanced else 1
        return load_balanced_order(sequence_length, parts)

    def plan(self) -> dict[str, Any]:
        """What must be the same in all processes, as a flat dict of JSON values."""
        state = self.state_dict()
        return {
            **{name: value for name, value in state.items() if name != "fingerprint"},
            **self._sizes,
            "mesh": {str(axis): size for axis, size in self.layout.mesh.shape.items()},
            "devices": [int(device.id) for device in self.layout.mesh.devices.flat],
            "data_axes": list(self.layout.data_axes),
            "sequence_axis": self.layout.sequence_axis,
            "load_balanced": self.load_balanced,
            **state["fingerprint"],
        }

    def _take(self) -> tuple[int, GlobalBatch]:
        if self._transfers is None and self._loader.consumed_samples != self._consumed:
            self._loader.seek(self._consumed)
        if self.device_prefetch:
            if self._transfers is None:
                self._transfers = Transfers(self._loader, self._place, self.device_prefetch)
            fetched = self._transfers.next()
        else:
            fetched = fetch(self._loader, self._place)
        if fetched is None:
            raise StopIteration
        return fetched

    def _halt(self) -> None:
        running, self._transfers = self._transfers, None
        if running is not None:
            running.stop()
        self._loader.seek(self._loader.consumed_samples)
