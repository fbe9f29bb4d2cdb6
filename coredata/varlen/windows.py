"""Packing a run of any length, window by window, so that it can go on from the middle."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coredata._typing import Integer
from coredata.varlen.pack import pack
from coredata.varlen.plan import PackPlan, concatenate


@runtime_checkable
class SampleLengths(Protocol):
    """Lengths of samples by number; an array is one."""

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def __getitem__(self, samples: slice, /) -> Any:
        """The lengths of a range of samples, as an integer array."""
        ...


@dataclass(frozen=True)
class RowPosition:
    """What was taken so far: `row` rows of window `window`, and all windows before it."""

    window: int = 0
    row: int = 0

    def state_dict(self) -> dict[str, int]:
        """For a checkpoint."""
        return {"window": self.window, "row": self.row}

    @classmethod
    def from_state(cls, state: Mapping[str, int]) -> "RowPosition":
        """Back from a checkpoint."""
        return cls(int(state["window"]), int(state["row"]))


@dataclass(frozen=True)
class PackWindows:
    """Rows packed from samples in order, `window` samples at a time.

    The samples of a window are packed among themselves. A window's plan follows from its lengths
    alone, so a position is two numbers and going on from it repacks one window. Windows of some
    thousand samples pack as well as all samples at once, and keep the order of the run.

    Attributes:
        lengths: tokens of each sample, in the order of the run.
        limit: tokens of a row.
        window: samples of a window.
        packer: see `coredata.varlen.PACKERS`.
        max_segments: the most segments of a row.
        overflow: what to do with samples longer than `limit`.
    """

    lengths: SampleLengths
    limit: int
    window: int = 8192
    packer: str = "best_fit_decreasing"
    max_segments: int | None = None
    overflow: str = "error"

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"window must be at least 1 sample, found {self.window}.")

    def __len__(self) -> int:
        """Number of windows."""
        return -(-len(self.lengths) // self.window)

    def plan(self, window: int) -> PackPlan:
        """The rows of one window.

        Raises:
            IndexError: a window that does not exist.
            ValueError: see `pack`.
        """
        if not 0 <= window < len(self):
            raise IndexError(f"There is no window {window}; {len(self)} are numbered from 0.")
        first = window * self.window
        lengths: Integer[np.ndarray, " samples"] = np.asarray(
            self.lengths[first : first + self.window]
        )
        return pack(
            lengths,
            self.limit,
            packer=self.packer,
            max_segments=self.max_segments,
            overflow=self.overflow,
            samples=np.arange(first, first + lengths.size),
        )

    def batches(
        self, rows: int, start: RowPosition | None = None, *, drop_last: bool = False
    ) -> Iterator[tuple[PackPlan, RowPosition]]:
        """Plans of exactly `rows` rows, and the position after each.

        A batch may take rows of several windows; every row comes exactly once. The last batch is
        filled with empty rows, or left out with `drop_last`.

        Raises:
            ValueError: no rows, or a start inside of no window.
        """
        if rows < 1:
            raise ValueError(f"A batch has at least 1 row, found rows={rows}.")
        position = start or RowPosition()
        pending: list[PackPlan] = []
        missing = rows
        for window in range(position.window, len(self)):
            plan = self.plan(window)
            taken = position.row if window == position.window else 0
            if not 0 <= taken <= len(plan):
                raise ValueError(
                    f"Position {position} lies outside of its window, which has {len(plan)} rows. "
                    "It belongs to other samples or other settings."
                )
            while taken < len(plan):
                stop = min(taken + missing, len(plan))
                pending.append(plan.rows(taken, stop))
                missing -= stop - taken
                taken = stop
                if missing == 0:
                    yield concatenate(pending), RowPosition(window, taken)
                    pending, missing = [], rows
        if pending and not drop_last:
            yield concatenate(pending).padded_to(rows), RowPosition(len(self), 0)
