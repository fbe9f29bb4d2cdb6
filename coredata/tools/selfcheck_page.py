"""What `coredata selfcheck` prints: a table as it goes, a verdict at the end, or JSON."""

import os
import platform
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numba
import numpy as np

from coredata import __version__
from coredata.testing.checks import CheckResult
from coredata.testing.throughput import Throughput
from coredata.tools.demo_page import Page, Stream

_NAME, _SECONDS, _VERDICT = 34, 10, 6
_GREEN, _RED, _BOLD = "\x1b[32m", "\x1b[31m", "\x1b[1m"


class SelfcheckPage:
    """Prints results to a stream as they come; `quiet` prints nothing."""

    def __init__(self, stream: Stream, quiet: bool = False) -> None:
        self._page = Page(stream)
        self._quiet = quiet
        self._group = ""
        self._width = min(max(shutil.get_terminal_size((100, 24)).columns, 72), 120)

    def begin(self) -> None:
        """The heading: what runs where."""
        self._line(f"coredata {__version__} selfcheck", _BOLD)
        self._line(
            f"Python {platform.python_version()}, numpy {np.__version__}, "
            f"numba {numba.__version__}, {os.cpu_count()} CPUs, "
            f"{platform.system()} {platform.machine()}"
        )

    def result(self, result: CheckResult) -> None:
        """One row; if it failed, what is wrong below it."""
        if result.group != self._group:
            self._group = result.group
            self._line()
            self._line(result.group, _BOLD)
        room = self._width - _SECONDS - _VERDICT - 2
        text = f"{result.name:<{_NAME}}  {result.covered}"
        verdict = "ok" if result.passed else "FAILED"
        colour = _GREEN if result.passed else _RED
        row = f"  {_shortened(text, room):<{room}}{verdict:>{_VERDICT}}"
        self._line(f"{row}{result.seconds:>{_SECONDS - 2}.2f} s", "" if result.passed else colour)
        for line in result.failure.splitlines():
            for part in textwrap.wrap(line, self._width - 6, break_on_hyphens=False) or [""]:
                self._line(f"      {part}", colour)

    def end(self, results: Sequence[CheckResult], rates: Sequence[Throughput]) -> None:
        """Throughput and the verdict."""
        if rates:
            self._line()
            self._line("Throughput", _BOLD)
        for rate in rates:
            shape = f"batches of {rate.batch_size} × {rate.sequence_length:,} tokens"
            amount = f"{rate.tokens_per_second / 1e6:,.1f} million tokens/s"
            room = self._width - 2 - _NAME - 2
            self._line(f"  {rate.name:<{_NAME}}  {shape:<{room - len(amount)}}{amount}")
        failed = [f"{r.group}: {r.name}" for r in results if not r.passed]
        self._line()
        seconds = sum(result.seconds for result in results)
        if failed:
            self._line(f"{len(failed)} of {len(results)} checks FAILED: {'; '.join(failed)}", _RED)
        else:
            self._line(f"All {len(results)} checks passed in {seconds:.1f} s.", _GREEN)

    def _line(self, text: str = "", style: str = "") -> None:
        if not self._quiet:
            self._page.line(text, style)


def as_data(results: Sequence[CheckResult], rates: Sequence[Throughput]) -> dict[str, Any]:
    """The same as values that JSON holds."""
    return {
        "coredata": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "passed": all(result.passed for result in results),
        "checks": [asdict(result) for result in results],
        "throughput": [asdict(rate) for rate in rates],
    }


def _shortened(text: str, room: int) -> str:
    """At most `room` characters."""
    return text if len(text) <= room else f"{text[: room - 1]}…"
