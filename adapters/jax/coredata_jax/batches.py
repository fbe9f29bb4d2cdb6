"""Global batches over a mesh of devices, read ahead, with an exact position."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, final

from jax.sharding import Mesh, NamedSharding

from coredata.datasets.protocol import Dataset
from coredata.loading import BatchLoader
from coredata.sampling import BatchSizeRampUp, GlobalBatchSampler
from coredata_jax.checks import as_axes, as_integer_dtype, check_rows
from coredata_jax.layout import BatchLayout
from coredata_jax.placing import GlobalBatch, place
from coredata_jax.sequence_order import SequenceOrder, load_balanced_order
from coredata_jax.share import LocalColumns, LocalRows
from coredata_jax.transfer import Transfers, fetch

SEQUENCE_FIELDS = ("tokens", "labels", "loss_mask", "position_ids", "segment_ids")
"""Fields whose second axis is the sequence, as the datasets of coredata name them."""


@final
class ShardedBatches(Iterator[GlobalBatch]):
    """An iterator of dicts of global `jax.Array`s: the global batches of a run, in order, once.

    Rows are split over `data_axes`, the sequence over `sequence_axis`. Each process reads the rows
    that its own devices hold, each once, however many of its devices hold it, and keeps of them
    the columns that its devices hold. Processes do not talk to each other here;
    `check_same_plan` lets them, once.

    Shapes never change (but for a ramp-up of the batch size, by whole steps of it). The arrays
    share no memory with anything else, so a step may donate them.

    Position and state are those of `coredata.loading.BatchLoader`: samples that were handed out,
    whatever the mesh and the number of processes, so that a state goes on exactly on any other, or
    in another framework. No thread starts before the first `next`; `close`, the end of the
    samples and an error end them. One consumer calls `next`.
    """

    def __init__(
        self,
        dataset: Dataset,
        global_batch_size: int | BatchSizeRampUp,
        mesh: Mesh,
        data_axes: str | Sequence[str] = ("data",),
        sequence_axis: str | None = None,
        *,
        consumed_samples: int = 0,
        drop_last: bool = True,
        load_balanced: bool = False,
        sequence_fields: Sequence[str] = SEQUENCE_FIELDS,
        integer_dtype: str = "int32",
        prefetch: int = 2,
        threads: int = 1,
        device_prefetch: int = 1,
    ) -> None:
        """Make an iterator at `consumed_samples`. Nothing is read or sent yet.

        Args:
            dataset: what to read; the same in all processes.
            global_batch_size: rows of a batch over all processes, or how they grow.
            mesh: the devices.
            data_axes: axes of the mesh that split the rows, the first one slowest; none: all rows
                on all devices.
            sequence_axis: the axis that splits the sequence.
            consumed_samples: where to start.
            drop_last: leave out a last short batch; False fills it with rows of no loss.
            load_balanced: put tokens in the order of `load_balanced_order` along `sequence_axis`.
                `cu_seqlens` still tells the text's order.
            sequence_fields: fields whose second axis is the sequence; the others are split by
                rows alone.
            integer_dtype: what 64-bit integers become; "int64" needs `jax_enable_x64`.
            prefetch: batches to keep ready on the host; 0 reads each when it is due.
            threads: batches read at the same time.
            device_prefetch: batches to keep on the devices beyond the one handed out; 0 sends
                each in `next`.

        Raises:
            ValueError: an axis that the mesh lacks, a batch that the data axes do not divide, or
                a number out of range.
        """
        self.layout = BatchLayout(mesh, as_axes(data_axes), sequence_axis)
        check_rows(global_batch_size, self.layout)
        if load_balanced and sequence_axis is None:
            raise ValueError(
                "load_balanced: it is an order along sequence_axis, which is None. "
                f"Give one of the mesh's axes {mesh.axis_names}, or load_balanced=False"
            )
        if device_prefetch < 0:
            raise ValueError(f"device_prefetch is {device_prefetch}, expected 0 or more, such as 1")
        self.dataset = dataset
        self.sampler = GlobalBatchSampler(
            len(dataset), consumed_samples, global_batch_size, drop_last
        )
        self.load_balanced = load_balanced
        self.sequence_fields = tuple(sequence_fields)
        self.device_prefetch = device_prefetch
        self._consumed = consumed_samples
        self._place = partial(place, layout=self.layout, sequence_fields=self.sequence_fields)
        self._transfers: Transfers | None = None
        share = LocalColumns(
            dataset,
            self.layout,
            self.sequence_fields,
            load_balanced,
            as_integer_dtype(integer_dtype),
        )
        rows = LocalRows(self.sampler, self.layout)
        self._loader = BatchLoader(share, rows, prefetch=prefetch, threads=threads)

    @property
    def consumed_samples(self) -> int:
        """Samples handed out so far, by all processes together."""
        return self._consumed

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._loader.closed

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
        return {
            "consumed_samples": self._consumed,
            "global_batch_size": repr(self.sampler.global_batch_size),
            "drop_last": self.sampler.drop_last,
            "mesh": {str(axis): size for axis, size in self.layout.mesh.shape.items()},
            "devices": [int(device.id) for device in self.layout.mesh.devices.flat],
            "data_axes": list(self.layout.data_axes),
            "sequence_axis": self.layout.sequence_axis,
            "load_balanced": self.load_balanced,
            **self._loader.state_dict()["fingerprint"],
        }

    def __len__(self) -> int:
        """Batches to come from here on."""
        return len(self.sampler.resume(self._consumed))

    def __iter__(self) -> "ShardedBatches":
        """Itself, at its position."""
        return self

    def __next__(self) -> GlobalBatch:
        """The next global batch.

        Whatever the dataset raises comes out here, when its batch is due; `next` tries it again.

        Raises:
            StopIteration: the samples are at an end.
            RuntimeError: it is closed.
        """
        self._check_open("read")
        with ExitStack() as failure:
            failure.callback(self._halt)
            if self.device_prefetch:
                if self._transfers is None:
                    self._transfers = Transfers(self._loader, self._place, self.device_prefetch)
                fetched = self._transfers.next()
            else:
                fetched = fetch(self._loader, self._place)
            if fetched is None:
                raise StopIteration
            failure.pop_all()
        self._consumed, batch = fetched
        return batch

    def seek(self, consumed_samples: int) -> None:
        """Go to where `consumed_samples` samples are consumed; what was read ahead is dropped.

        Raises:
            ValueError: there are not so many samples.
            RuntimeError: it is closed.
        """
        self._check_open("moved")
        self.sampler.resume(consumed_samples)
        self._consumed = int(consumed_samples)
        self._halt()

    def state_dict(self) -> dict[str, Any]:
        """The position, as a small dict of JSON values; the same in every process."""
        return {**self._loader.state_dict(), "consumed_samples": self._consumed}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a state was taken, on whatever mesh, processes and framework that was.

        Raises:
            TypeError: the state is not a mapping.
            ValueError: it is malformed, or at a position past the end.
            StateMismatchError: it was saved over another dataset or order.
            RuntimeError: it is closed.
        """
        self._check_open("moved")
        self._halt()
        self._loader.load_state_dict(state_dict)
        self._consumed = self._loader.consumed_samples

    def get_state(self) -> dict[str, Any]:
        """`state_dict`, under the name Grain's iterators have for it."""
        return self.state_dict()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """`load_state_dict`, under the name Grain's iterators have for it."""
        self.load_state_dict(state)

    def close(self) -> None:
        """End the threads and wait until they have ended. Calling it again does nothing."""
        if not self.closed:
            self._halt()
            self._loader.close()

    def __enter__(self) -> "ShardedBatches":
        """Itself; leaving the block closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise RuntimeError(
                f"this ShardedBatches is closed (at consumed_samples={self._consumed}) and cannot "
                f"be {what}. Make another one, and load this one's state_dict() into it"
            )

    def _halt(self) -> None:
        """Forget what was read ahead and end the threads; the position stays."""
        running, self._transfers = self._transfers, None
        if running is not None:
            running.stop()
        self._loader.seek(self._consumed)
