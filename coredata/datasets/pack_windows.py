"""Plans of a run, some samples at a time: of rows that are read to know them, of global batches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coredata._typing import Int64
from coredata.datasets.protocol import Dataset
from coredata.varlen import (
    PackPlan,
    Segments,
    dp_balanced,
    fit_to_limit,
    pack_segments,
    unpack_samples,
)

PACKED_FIELDS = ("tokens", "labels", "loss_mask")
"""Fields that rows of packed samples are made of."""


@runtime_checkable
class PlannedWindows(Protocol):
    """A run cut into windows of samples, each with a plan; `coredata.varlen.PackWindows` is one."""

    def __len__(self) -> int:
        """Number of windows."""
        ...

    def plan(self, window: int) -> PackPlan:
        """The plan of one window."""
        ...


@dataclass(frozen=True, eq=False)
class ReadWindows:
    """Windows of samples that are read to see what is in them.

    A sample with `cu_seqlens` (a pack of conversations) is cut at them, so that each conversation
    finds a row of its own; another one is one segment. Attributes are as in
    `coredata.varlen.PackWindows`.

    Raises:
        ValueError: a window of no samples.
    """

    dataset: Dataset
    limit: int
    window: int
    packer: str
    max_segments: int | None
    overflow: str

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"window must be at least 1 sample, found {self.window}.")

    def __len__(self) -> int:
        """Number of windows."""
        return -(-len(self.dataset) // self.window)

    def plan(self, window: int) -> PackPlan:
        """The rows of one window; all its samples are read.

        Raises:
            ValueError: a segment longer than a row, with overflow="error"; samples without the
                fields that are packed.
        """
        first = window * self.window
        numbers = range(first, min(first + self.window, len(self.dataset)))
        read = self.dataset.__getitems__(list(numbers))
        for sample in read[:1]:
            check_packable(sample)
        bounds = [_bounds(sample) for sample in read]
        lengths = np.concatenate([np.diff(ends) for ends in bounds])
        samples = np.repeat(np.array(numbers, np.int64), [len(ends) - 1 for ends in bounds])
        offsets = np.concatenate([ends[:-1] for ends in bounds])
        some = np.flatnonzero(lengths)
        cut = Segments(samples[some], offsets[some], lengths[some])
        fitted = fit_to_limit(cut, self.limit, self.overflow)
        plan, _ = pack_segments(
            fitted.segments, self.limit, packer=self.packer, max_segments=self.max_segments
        )
        return replace(plan, lost_tokens=fitted.lost_tokens, lost_samples=fitted.lost_samples)


@dataclass(frozen=True)
class Schedule:
    """How global batches are taken and spread; see `coredata.varlen.dp_balanced`.

    Raises:
        ValueError: sizes that do not divide.
    """

    global_batch_size: int
    """Samples of a step over all data-parallel ranks."""

    max_seqlen_per_dp_cp_rank: int
    """Tokens that a rank may hold of a pack."""

    data_parallel_size: int = 1
    """Ranks that get different packs."""

    micro_batch_size: int = 1
    """Samples that a rank takes in a row, as its sampler says."""

    context_parallel_size: int = 1
    """Ranks that share a pack."""

    microbatch_group_size_per_vp_stage: int | None = None
    """With an interleaved pipeline, the number of microbatches is a multiple of this."""

    def __post_init__(self) -> None:
        block = self.micro_batch_size * self.data_parallel_size
        if block < 1 or self.global_batch_size < 1 or self.global_batch_size % block:
            raise ValueError(
                f"global_batch_size is {self.global_batch_size}, need a multiple of "
                f"micro_batch_size × data_parallel_size = {self.micro_batch_size} × "
                f"{self.data_parallel_size}, such as {8 * max(block, 1)}"
            )

    @property
    def limit(self) -> int:
        """Tokens of a pack."""
        return self.max_seqlen_per_dp_cp_rank * self.context_parallel_size

    def order(self) -> Int64[np.ndarray, " batch"]:
        """Places in a global batch, in order of data-parallel rank, then local order.

        A rank takes what `HybridCPMegatronPretrainingSampler` gives it.
        """
        places = np.arange(self.global_batch_size, dtype=np.int64)
        by_rank = places.reshape(-1, self.data_parallel_size, self.micro_batch_size)
        return by_rank.transpose(1, 0, 2).reshape(-1)


@dataclass(frozen=True, eq=False)
class ScheduleWindows:
    """The plans of global batches, one a window; the last short batch has none.

    Attributes:
        dataset: samples in the order of the run.
        schedule: how they are taken and spread.
        lengths: padded length of every sample; None reads them.
    """

    dataset: Dataset
    schedule: Schedule
    lengths: Int64[np.ndarray, " samples"] | None = None

    def __len__(self) -> int:
        """Number of whole global batches."""
        return len(self.dataset) // self.schedule.global_batch_size

    def plan(self, window: int) -> PackPlan:
        """The packs of one global batch; samples are numbered by their place among all ranks'.

        Raises:
            ValueError: see `coredata.varlen.dp_balanced`.
        """
        schedule = self.schedule
        numbers = window * schedule.global_batch_size + schedule.order()
        lengths = self._read(numbers) if self.lengths is None else self.lengths[numbers]
        return dp_balanced(
            lengths,
            schedule.max_seqlen_per_dp_cp_rank,
            schedule.data_parallel_size,
            schedule.context_parallel_size,
            schedule.microbatch_group_size_per_vp_stage,
        )

    def _read(self, numbers: Int64[np.ndarray, " batch"]) -> Int64[np.ndarray, " parts"]:
        parts = unpack_samples(self.dataset.__getitems__(numbers.tolist()))
        return np.array([len(part["tokens"]) for part in parts], np.int64)


def _bounds(sample: Any) -> Int64[np.ndarray, " bounds"]:
    if "cu_seqlens" in sample:
        return np.asarray(sample["cu_seqlens"], np.int64)
    return np.array([0, len(sample["tokens"])], np.int64)


def check_packable(sample: Mapping[str, Any]) -> None:
    """Refuse a sample that rows cannot be packed of.

    Raises:
        ValueError: it lacks a field; the text names what has them.
    """
    missing = [name for name in PACKED_FIELDS if name not in sample]
    if missing:
        raise ValueError(
            f"the samples have no {' and no '.join(missing)}, only {', '.join(sample)}; rows are "
            f"packed of {', '.join(PACKED_FIELDS)}. Give a VarlenDataset or an SFTDataset; samples "
            "of one length, such as BERT's and T5's, are batches as they are, without packing"
        )
