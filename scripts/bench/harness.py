"""Two ways to the same result, run in turn in one process; the ratio is a median over pairs."""

import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table: what was done, medians, their ratio, peaks in bytes.

    Medians are in seconds; with another `unit` they are a count of it.
    """

    stage: str
    ours: float
    other: float
    ratio: float
    what: str
    ours_peak: int
    other_peak: int
    unit: str = "s"

    def cells(self) -> list[str]:
        """The row as text: stage, both times, ratio, both peaks, remark."""
        return [
            self.stage,
            self._amount(self.ours),
            self._amount(self.other),
            f"{self.ratio:.1f}" if self.ratio >= 1 else f"{self.ratio:.2f}",
            f"{self.ours_peak / 1e6:.0f} MB",
            f"{self.other_peak / 1e6:.0f} MB",
            self.what,
        ]

    def _amount(self, value: float) -> str:
        return f"{value:.4f} s" if self.unit == "s" else f"{value:,.0f} {self.unit}".strip()


HEAD = ["stage", "coredata", "other", "ratio", "memory", "other's", "setting"]


def compare(
    stage: str,
    ours: Callable[[], Any],
    other: Callable[[], Any],
    same: Callable[[Any, Any], None],
    what: str,
    runs: int = 5,
) -> Row:
    """Time `ours` and `other` in turn, `runs` times each after one warm-up pair.

    The results of the warm-up go to `same`, which raises if they differ: a ratio between two
    different results says nothing. The ratio is other / ours, the median over the pairs. The
    memory is how much more than before each had at its peak, results included: a median, as
    the times are.
    """
    return compare_each(stage, {what: ours}, other, same, runs)[0]


def compare_each(
    stage: str,
    ours: Mapping[str, Callable[[], Any]],
    other: Callable[[], Any],
    same: Callable[[Any, Any], None],
    runs: int = 5,
) -> list[Row]:
    """The same for several ways of `ours`, setting -> function, beside one run of `other` each."""
    functions = [*ours.values(), other]
    expected = other()
    for function in ours.values():
        same(function(), expected)
    del expected
    times: list[list[float]] = [[] for _ in functions]
    peaks: list[list[int]] = [[] for _ in functions]
    for _ in range(runs):
        for function, seconds, extra in zip(functions, times, peaks, strict=True):
            gc.collect()
            before = _reset_peak()
            start = time.perf_counter()
            result = function()
            seconds.append(time.perf_counter() - start)
            extra.append(max(_memory("VmHWM") - before, 0))
            del result
    return [
        Row(
            stage,
            statistics.median(mine),
            statistics.median(times[-1]),
            statistics.median(b / a for a, b in zip(mine, times[-1], strict=True)),
            what,
            int(statistics.median(extra)),
            int(statistics.median(peaks[-1])),
        )
        for what, mine, extra in zip(ours, times, peaks, strict=False)
    ]


def _reset_peak() -> int:
    """Let the process's peak memory start again from what it has now; returns that, in bytes.

    Freed memory goes back to the system first: reused, it would not be counted.
    """
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {name}; memory is measured on Linux alone")


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table, padded so that it also reads well in a terminal."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]])
