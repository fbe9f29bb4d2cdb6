"""A page on the terminal: headings, tables, and boxes of text."""

import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

WIDTH = 88
_BOLD, _DIM, _ACCENT, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"
_GREEN, _RED = "\x1b[32m", "\x1b[31m"


@runtime_checkable
class Stream(Protocol):
    """Where a page goes: standard output, or anything with its shape."""

    @property
    def encoding(self) -> str | None:
        """Name of the encoding; None stands for UTF-8."""
        ...

    def write(self, text: str, /) -> int:
        """Write text."""
        ...

    def flush(self) -> None:
        """Hand on what was written."""
        ...

    def isatty(self) -> bool:
        """Whether a person is looking at it."""
        ...


@dataclass(frozen=True)
class Page:
    """Prints to a stream, with colours if it is a terminal (and NO_COLOR is not set)."""

    stream: Stream

    @property
    def colours(self) -> bool:
        """Whether escape codes are written."""
        return self.stream.isatty() and not os.environ.get("NO_COLOR")

    def line(self, text: str = "", style: str = "") -> None:
        """A line of text. Characters that the stream cannot write are replaced."""
        encoding = self.stream.encoding or "utf-8"
        shown = text.encode(encoding, "replace").decode(encoding)
        if style and self.colours:
            shown = f"{style}{shown}{_PLAIN}"
        print(shown, file=self.stream, flush=True)

    def title(self, text: str) -> None:
        """The heading of the page."""
        self.line(text, _BOLD)

    def heading(self, number: int, text: str) -> None:
        """The heading of a part, with an empty line before it."""
        self.line()
        self.line(f"{number}  {text}", _BOLD)

    def note(self, text: str) -> None:
        """Text of less weight, wrapped."""
        for line in textwrap.wrap(text, WIDTH - 3):
            self.line(f"   {line}", _DIM)

    def good(self, text: str) -> None:
        """What was to be shown, shown."""
        self.line(f"   {text}", _GREEN)

    def fail(self, text: str) -> None:
        """What was to be shown, not so."""
        self.line(f"   {text}", _RED)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table: the first column to the left, the others to the right."""
        cells = [list(columns), *(list(row) for row in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        for number, row in enumerate(cells):
            first = row[0].ljust(widths[0])
            rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            self.line("   " + "   ".join([first, *rest]).rstrip(), _DIM if number == 0 else "")

    def box(self, label: str, lines: Sequence[str], *, last: bool) -> None:
        """Lines under a label, tied to the boxes before and after at the left."""
        self.line(f"   ├─ {label}", _ACCENT)
        for line in lines:
            self.line("   │  " + shorten(line, WIDTH - 6))
        if last:
            self.line("   ╰─", _ACCENT)


def shorten(line: str, width: int) -> str:
    """`line` on at most `width` columns, without tabs and control characters."""
    plain = "".join(c if c.isprintable() else " " for c in line.expandtabs(4))
    return plain if len(plain) <= width else plain[: width - 1] + "…"


def excerpt(text: str, head: int, tail: int) -> list[str]:
    """The first `head` and last `tail` lines of `text`, blank lines aside."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) <= head + tail + 1:
        return lines
    middle = len(lines) - head - tail
    return [*lines[:head], f"  … {middle} lines …", *lines[len(lines) - tail :]]
