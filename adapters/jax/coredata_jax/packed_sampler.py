"""The rows of a packed run in order, a global batch at a time, from anywhere on."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import ClassVar, final

import numpy as np

from coredata._typing import Int64
from coredata.sampling import PADDING, BatchSampler, Order
from coredata.sampling.checks import check_positive
from coredata.varlen import RowPosition
from coredata_jax.packed_plans import Plans
from coredata_jax.packed_rows import ROWS


@final
class RowSampler(BatchSampler):
    """The rows of all windows, `rows` at a time; the last batch is dropped, or filled up.

    Samples are rows here: `consumed_samples` is the number of the next row (see `ROWS`), and
    windows are planned as far as they are needed. `len` needs all of them.

    Raises:
        ValueError: a position that lies in no window, or a batch of no rows.
    """

    cyclic: ClassVar[bool] = False

    def __init__(
        self, plans: Plans, rows: int, consumed_samples: int = 0, drop_last: bool = True
    ) -> None:
        check_positive(global_batch_size=rows)
        self.plans = plans
        self.rows = rows
        self.drop_last = drop_last
        self.total_samples = len(plans) * ROWS
        self.consumed_samples = consumed_samples
        self._ends: list[int] = []
        here = self.position(consumed_samples)
        if not 0 <= here.window <= len(plans) or (here.row and here.row > self._rows_of(here)):
            raise ValueError(
                f"{here} lies in none of the {len(plans)} windows. It belongs to other samples or "
                "other settings; RowPosition(window=0, row=0) is the start"
            )

    @staticmethod
    def position(number: int) -> RowPosition:
        """Window and row of a row number."""
        return RowPosition(number // ROWS, number % ROWS)

    @staticmethod
    def number(position: RowPosition) -> int:
        """The number of a row."""
        return position.window * ROWS + position.row

    def __len__(self) -> int:
        total = self._walk(None)
        return total // self.rows if self.drop_last else -(-total // self.rows)

    def batches(self, start: int = 0) -> Iterator[Int64[np.ndarray, " batch"]]:
        """The batches from batch `start` on; see `BatchSampler`."""
        here = self.position(self.consumed_after(start))
        pending: list[np.ndarray] = []
        missing = self.rows
        for window in range(here.window, len(self.plans)):
            at = here.row if window == here.window else 0
            count = self.plans.facts(window).rows
            while at < count:
                stop = min(at + missing, count)
                pending.append(np.arange(at, stop, dtype=np.int64) + window * ROWS)
                missing -= stop - at
                at = stop
                if missing == 0:
                    yield np.concatenate(pending)
                    pending, missing = [], self.rows
        if pending and not self.drop_last:
            yield np.concatenate([*pending, np.full(missing, PADDING, np.int64)])

    def consumed_after(self, batches: int) -> int:
        """The number of the next row after this many batches from here; see `BatchSampler`."""
        if batches == 0:
            return self.consumed_samples
        wanted = batches * self.rows
        found = self._walk(wanted)
        filled = not self.drop_last and wanted - self.rows < found
        if batches < 0 or (found < wanted and not filled):
            raise IndexError(f"batches: {batches}, but there are {found // self.rows} from here")
        if found < wanted:
            return self.total_samples
        here = self.position(self.consumed_samples)
        passed = bisect_left(self._ends, wanted)
        if self._ends[passed] == wanted:
            return (here.window + passed + 1) * ROWS
        before = self._ends[passed - 1] if passed else -here.row
        return (here.window + passed) * ROWS + wanted - before

    def resume(self, consumed_samples: int) -> "RowSampler":
        """The same sampler from another place; see `BatchSampler`."""
        return RowSampler(self.plans, self.rows, consumed_samples, self.drop_last)

    def order(self) -> Order:
        """What the order depends on; see `BatchSampler`."""
        return {"order": "packed rows", **self.plans.settings()}

    def _walk(self, rows: int | None) -> int:
        """Count rows from here to the end of a window, until there are so many; their number."""
        here = self.position(self.consumed_samples)
        while rows is None or not self._ends or self._ends[-1] < rows:
            window = here.window + len(self._ends)
            if window >= len(self.plans):
                break
            before = self._ends[-1] if self._ends else -here.row
            self._ends.append(before + self.plans.facts(window).rows)
        return self._ends[-1] if self._ends else 0

    def _rows_of(self, here: RowPosition) -> int:
        return self.plans.facts(here.window).rows if here.window < len(self.plans) else 0
