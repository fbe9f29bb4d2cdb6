"""How well each packer does on given lengths, beside the best there can be."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coredata._typing import Integer
from coredata.varlen.pack import PACKERS, pack


@dataclass(frozen=True)
class PackingReport:
    """What one packer made of the lengths.

    Attributes:
        packer: which one.
        rows: rows it needs.
        bound: rows that no packer can do without: tokens / limit (and segments / max_segments).
        efficiency: share of places that hold a token.
        largest_row: most segments of a row.
        lost_tokens: cut off or dropped because of the limit.
    """

    packer: str
    rows: int
    bound: int
    efficiency: float
    largest_row: int
    lost_tokens: int


def compare_packers(
    lengths: Integer[np.ndarray, " samples"],
    limit: int,
    *,
    packers: Sequence[str] = PACKERS,
    max_segments: int | None = None,
    overflow: str = "split",
) -> list[PackingReport]:
    """Pack `lengths` with each packer and report; see `pack` for the arguments and errors."""
    reports = []
    for packer in packers:
        plan = pack(lengths, limit, packer=packer, max_segments=max_segments, overflow=overflow)
        segments = len(plan.segments)
        bound = max(-(-plan.tokens // limit), -(-segments // (max_segments or segments or 1)))
        most = int(plan.row_segments().max(initial=0))
        reports.append(
            PackingReport(packer, len(plan), bound, plan.efficiency, most, plan.lost_tokens)
        )
    return reports


def packing_table(reports: Sequence[PackingReport]) -> str:
    """The reports as text, a line each under a heading."""
    lines = [f"{'packer':<22}{'rows':>9}{'bound':>9}{'full':>9}{'segments':>10}{'lost':>12}"]
    lines += [
        f"{r.packer:<22}{r.rows:>9}{r.bound:>9}{r.efficiency:>9.2%}{r.largest_row:>10}"
        f"{r.lost_tokens:>12}"
        for r in reports
    ]
    return "\n".join(lines)
