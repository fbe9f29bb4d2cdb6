"""Samples of different lengths as global batches of fixed rows over a mesh."""

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, final

from jax.sharding import Mesh

from coredata.datasets import CachedWindows, ReadWindows
from coredata.datasets.protocol import Dataset
from coredata.loading import StateMismatchError, make_state, read_state
from coredata.sampling.checks import whole_number
from coredata.varlen import PackWindows, RowPosition, SampleLengths
from coredata_jax.checks import as_axes, check_rows
from coredata_jax.layout import BatchLayout
from coredata_jax.packed_plans import Plans, Windows
from coredata_jax.packed_rows import ROWS, PackedRows
from coredata_jax.packed_sampler import RowSampler
from coredata_jax.sharded import SEQUENCE_FIELDS, ShardedLoader


@final
class PackedBatches(ShardedLoader):
    """Global batches whose rows hold several samples each; every batch has the same shapes.

    Samples are packed in windows (`coredata.varlen.PackWindows`): within one, samples go where
    they fit best, and none that fits a row is cut. See `PackedRows.get_batch` for the fields.
    Rows and columns are shared out, read ahead and sent as by `ShardedBatches`.

    All processes make the same plans from the lengths; of the samples, each reads those of its
    own rows. Without `lengths`, it reads a window whole to see what is in it; with `cached`, plans
    are those that `coredata prepare-cache --packing-plan` made, or are made and kept by the first
    start.

    The position is a number of rows of a window. A state goes on exactly on any other mesh,
    number of processes and batch size; with other samples, lengths or settings it is refused.
    """

    def __init__(
        self,
        dataset: Dataset,
        global_batch_size: int,
        sequence_length: int,
        mesh: Mesh,
        data_axes: str | Sequence[str] = ("data",),
        sequence_axis: str | None = None,
        *,
        max_segments: int,
        lengths: SampleLengths | None = None,
        cached: bool = False,
        window: int = 8192,
        packer: str = "best_fit_decreasing",
        overflow: str = "error",
        drop_last: bool = True,
        load_balanced: bool = False,
        integer_dtype: str = "int32",
        prefetch: int = 2,
        threads: int = 1,
        device_prefetch: int = 1,
    ) -> None:
        """Make an iterator at the first row. Nothing is read, packed or sent yet.

        Args:
            dataset: samples with `tokens`, `labels` and `loss_mask`, such as a `VarlenDataset`'s,
                or with `cu_seqlens` as well, such as an `SFTDataset`'s: these are cut apart.
            global_batch_size: rows of a batch over all processes.
            sequence_length: tokens of a row.
            mesh: the devices.
            data_axes: axes of the mesh that split the rows.
            sequence_axis: the axis that splits the sequence.
            max_segments: the most segments of a row, which `cu_seqlens` has room for.
            lengths: tokens of each sample, padding included, as an array, or such as
                `VarlenDataset.lengths`; None reads samples to know.
            cached: take the plans from the dataset's cache (`coredata.datasets.CachedWindows`)
                instead; it is a dataset of rows, or a blend of such.
            window: samples that are packed together.
            packer: see `coredata.varlen.PACKERS`.
            overflow: what becomes of a segment longer than a row; see `coredata.varlen.OVERFLOWS`.
            drop_last: leave out a last short batch; False fills it with empty rows.
            load_balanced: as in `ShardedBatches`; rows are reordered as wholes.
            integer_dtype: as in `ShardedBatches`.
            prefetch: as in `ShardedBatches`.
            threads: as in `ShardedBatches`.
            device_prefetch: as in `ShardedBatches`.

        Raises:
            ValueError: an axis that the mesh lacks, rows that the data axes do not divide, lengths
                of another number of samples, or a number out of range.
            TypeError: with `cached`, a dataset that is not of rows; a number that is no integer.
        """
        layout = BatchLayout(mesh, as_axes(data_axes), sequence_axis)
        rows = whole_number("global_batch_size", global_batch_size, layout.row_shards)
        check_rows(rows, layout)
        sequence_length = whole_number("sequence_length", sequence_length, 4096)
        max_segments = whole_number("max_segments", max_segments, 16)
        window = whole_number("window", window, 8192)
        if max_segments < 1:
            raise ValueError(f"max_segments is {max_segments}, expected 1 or more, such as 16")
        if lengths is not None and len(lengths) != len(dataset):
            raise ValueError(
                f"lengths: got {len(lengths)} for a dataset of {len(dataset)} samples; give one "
                "for each, or None to read them"
            )
        if lengths is not None and cached:
            raise ValueError("lengths and cached exclude each other; leave lengths out")
        options = (sequence_length, window, packer, max_segments, overflow)
        windows: Windows
        whole = lengths is not None
        if cached:
            windows = CachedWindows(dataset, *options)
            whole = windows.whole
        elif lengths is None:
            windows = ReadWindows(dataset, *options)
        else:
            windows = PackWindows(lengths, *options)
        self._plans = Plans(windows)
        self._samples = len(dataset)
        super().__init__(
            PackedRows(dataset, self._plans, max_segments, whole),
            RowSampler(self._plans, rows, 0, drop_last),
            layout,
            {"global_batch_size": repr(rows), "drop_last": drop_last},
            load_balanced=load_balanced,
            sequence_fields=SEQUENCE_FIELDS,
            integer_dtype=integer_dtype,
            prefetch=prefetch,
            threads=threads,
            device_prefetch=device_prefetch,
        )

    @property
    def position(self) -> RowPosition:
        """The window, and how many of its rows were handed out."""
        return RowSampler.position(self._consumed)

    @property
    def consumed_samples(self) -> int:
        """Samples of the windows all of whose rows were handed out."""
        return min(self.position.window * self._plans.windows.window, self._samples)

    def seek(self, consumed_samples: SupportsIndex) -> None:
        """Go to the start of the window that begins after so many samples.

        Raises:
            ValueError: no window begins there.
            RuntimeError: it is closed.
        """
        consumed = whole_number("consumed_samples", consumed_samples)
        self._seek(RowSampler.number(RowPosition(self._window_at(consumed))))

    def state_dict(self) -> dict[str, Any]:
        """The position, as a small dict of JSON values; the same in every process.

        It has one entry more than other loaders': rows of the present window, and its plan.
        """
        here = self.position
        digest = self._plans.facts(here.window).digest if here.row else None
        state = make_state(self.consumed_samples, self.fingerprint())
        return {**state, "packing": {"row": here.row, "plan": digest}}

    def plan(self) -> dict[str, Any]:
        """What must be the same in all processes; the present window is planned for it."""
        window = self.position.window
        rows = self._plans.facts(window).digest if window < len(self._plans) else None
        return {**super().plan(), "rows": rows}

    def _position_in(self, state_dict: Mapping[str, Any]) -> int:
        """The number of a row that a state stands before; see `load_state_dict`.

        Raises:
            TypeError: the state is not a mapping.
            ValueError: it is malformed, or of a loader that does not pack.
            StateMismatchError: it was saved over other samples, settings or lengths.
        """
        window = self._window_at(read_state(state_dict, self.fingerprint()))
        packing = state_dict.get("packing")
        if not isinstance(packing, Mapping) or not {"row", "plan"} <= packing.keys():
            raise ValueError(
                f"the loader state has packing {packing!r}, expected a row and a plan. Pass the "
                "whole dict that PackedBatches.state_dict() returned"
            )
        row = whole_number("the loader state's packing row", packing["row"])
        if not 0 <= row < ROWS:
            raise ValueError(
                f"the loader state's packing row is {row}, expected 0 or more. Pass the dict that "
                "PackedBatches.state_dict() returned, unchanged"
            )
        if row and (found := self._plans.facts(window).digest) != packing["plan"]:
            raise StateMismatchError(
                f"the samples from {window * self._plans.windows.window} on are packed otherwise "
                f"than when the state was saved (plan {packing['plan']}, now {found}): their "
                "lengths have changed. Load it over the same samples, padded alike"
            )
        return RowSampler.number(RowPosition(window, row))

    def _window_at(self, consumed_samples: int) -> int:
        size = self._plans.windows.window
        if consumed_samples % size and consumed_samples != self._samples:
            raise ValueError(
                f"consumed_samples: no window of {size} samples begins after {consumed_samples}. "
                f"{consumed_samples // size * size} would work"
            )
        return -(-consumed_samples // size)
