"""The steps of a run whose samples are packed into rows: which samples each step takes."""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Int64
from coredata.datasets import CachedWindows
from coredata.datasets.pack_plans import KeptPlans
from coredata.sampling import Takings, TrainingSteps
from coredata.tools.data_arguments import packing_scheduler
from coredata.tools.data_packing import packing_from_args
from coredata.tools.packing_flags import ROW_PACKERS


@dataclass(frozen=True)
class PackedSteps:
    """Steps that take rows of a packing plan, as `coredata_jax.PackedBatches` does.

    Steps and rows are counted from 0; step t takes rows `t * rows` up to `(t + 1) * rows` of all
    windows laid end to end. A last step that is not full is none.

    Attributes:
        plans: of the whole run.
        rows: rows of a step over all ranks.
        packer: what packed them.
    """

    plans: KeptPlans
    rows: int
    packer: str

    def __len__(self) -> int:
        """Number of steps."""
        return (self.plans.row_splits.size - 1) // self.rows

    def rows_before(self, step: int) -> int:
        """Rows that were taken when step `step` began."""
        return step * self.rows

    def samples(self, step: int) -> Int64[np.ndarray, " batch"]:
        """The samples of a step, row by row.

        Raises:
            IndexError: there is no such step.
        """
        if not 0 <= step < len(self):
            raise IndexError(f"step {step} of a run of {len(self)} steps over packed rows")
        splits = self.plans.row_splits
        begin, end = splits[self.rows_before(step)], splits[self.rows_before(step + 1)]
        return self.plans.segments[begin:end, 0].astype(np.int64)

    def rows_of(self, samples: Int64[np.ndarray, " wanted"]) -> dict[int, int]:
        """The row of each sample that is in one."""
        at = np.flatnonzero(np.isin(self.plans.segments[:, 0], samples))
        rows = np.searchsorted(self.plans.row_splits, at, side="right") - 1
        return dict(zip(self.plans.segments[at, 0].tolist(), rows.tolist(), strict=True))

    def taking(self, samples: Int64[np.ndarray, " wanted"], steps: int | None = None) -> Takings:
        """The steps that took any of `samples`, among the first `steps` (default: all)."""
        count = len(self) if steps is None else min(steps, len(self))
        found = [(row // self.rows, sample) for sample, row in self.rows_of(samples).items()]
        taken = np.array(sorted(one for one in found if one[0] < count), np.int64).reshape(-1, 2)
        return Takings(taken[:, 0].copy(), taken[:, 1].copy())


def packs_rows(args: argparse.Namespace) -> bool:
    """Whether flags ask that samples be packed into rows of one length."""
    return packing_scheduler(args) in ROW_PACKERS


def packed_steps(args: argparse.Namespace, dataset: Any, steps: TrainingSteps) -> PackedSteps:
    """The steps of a run that packs rows, by its plan, which is made if none is kept.

    Args:
        args: the flags.
        dataset: what is packed.
        steps: the steps of the same flags without packing: a step has as many rows as these have
            samples.

    Raises:
        ValueError: what cannot be traced; the text says what to use instead.
    """
    windows = packing_from_args(args, dataset)
    instead = "look at the plan: coredata.datasets.CachedWindows(...).plan(window)"
    if not isinstance(windows, CachedWindows) or not windows.whole:
        raise ValueError(
            "--sft samples hold several conversations, which packing puts into different rows: "
            f"trace cannot follow them; {instead}"
        )
    if not isinstance(steps.global_batch_size, int):
        raise ValueError(
            "--rampup-batch-size: trace cannot follow packed rows of a batch size that grows; "
            f"{instead}"
        )
    return PackedSteps(windows.open(), steps.global_batch_size, windows.packer)
