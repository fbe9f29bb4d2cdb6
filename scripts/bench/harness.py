"""Two ways to the same result, run in turn in one process; the ratio is a median over pairs."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table: what was done, both medians in seconds, and how they compare."""

    stage: str
    ours: float
    other: float
    ratio: float
    what: str

    def cells(self) -> list[str]:
        """The row as text: stage, both times, ratio, remark."""
        return [
            self.stage,
            f"{self.ours:.4f} s",
            f"{self.other:.4f} s",
            f"{self.ratio:.1f}",
            self.what,
        ]


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
    different results says nothing. The ratio is other / ours, the median over the pairs.
    """
    same(ours(), other())
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for function, seconds in zip((ours, other), times, strict=True):
            gc.collect()
            start = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - start)
    ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
    return Row(stage, statistics.median(times[0]), statistics.median(times[1]), ratio, what)


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table, padded so that it also reads well in a terminal."""
    head = ["stage", "coredata", "reference", "ratio", "setting"]
    lines = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]])
