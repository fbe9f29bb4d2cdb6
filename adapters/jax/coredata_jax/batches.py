"""Global batches over a mesh of devices, read ahead, with an exact position."""

from collections.abc import Sequence
from typing import final

from jax.sharding import Mesh

from coredata.datasets.protocol import Dataset
from coredata.sampling import BatchSizeRampUp, GlobalBatchSampler
from coredata_jax.checks import as_axes, check_rows
from coredata_jax.layout import BatchLayout
from coredata_jax.sharded import SEQUENCE_FIELDS, ShardedLoader


@final
class ShardedBatches(ShardedLoader):
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
            TypeError: a number that is no integer.
        """
        layout = BatchLayout(mesh, as_axes(data_axes), sequence_axis)
        global_batch_size = check_rows(global_batch_size, layout)
        sizes = {"global_batch_size": repr(global_batch_size), "drop_last": drop_last}
        super().__init__(
            dataset,
            GlobalBatchSampler(len(dataset), consumed_samples, global_batch_size, drop_last),
            layout,
            sizes,
            load_balanced=load_balanced,
            sequence_fields=sequence_fields,
            integer_dtype=integer_dtype,
            prefetch=prefetch,
            threads=threads,
            device_prefetch=device_prefetch,
        )
