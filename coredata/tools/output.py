"""What all commands print alike: notes, numbers, JSON, and progress of what takes long."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

OK = 0
"""Exit code: all is as it should be."""

PROBLEMS = 1
"""Exit code: the command did its work and found something wrong."""

USAGE = 2
"""Exit code: the command could not do its work: flags, files, permissions."""

INTERRUPTED = 130
"""Exit code: Ctrl-C."""

BROKEN_PIPE = 141
"""Exit code: who read the output (such as `head`) left before its end; as of a shell's SIGPIPE."""

EXIT_CODES = (
    "Exit code: 0 done, 1 problems were found, 2 it could not be done, 130 interrupted, 141 who "
    "read the output left before its end."
)
"""For the end of a command's help."""

DELAY = 2.0
"""Seconds before progress is shown."""

_REDRAW = 0.2
_LINE = 30.0


@runtime_checkable
class TextStream(Protocol):
    """What is printed to: `sys.stderr`, any open text file, a `StringIO`."""

    def write(self, text: str, /) -> Any:
        """Take text."""
        ...

    def flush(self) -> Any:
        """Show what was taken."""
        ...

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...


def say(command: str, text: str) -> None:
    """A note on standard error, after the command's name."""
    print(f"coredata {command}: {text}", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON value on standard output, for scripts."""
    print(json.dumps(value, indent=2))


def count_of(number: int, noun: str) -> str:
    """A number of things: "1 file", "1,200 files", "0 prefixes"."""
    ending = "es" if noun.endswith(("s", "x", "tch", "sh")) else "s"
    return f"{number:,} {noun}{'' if number == 1 else ending}"


def size_text(count: int) -> str:
    """Bytes, in the largest unit that leaves a whole number before the point: "1.5 GB"."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 1000 or unit == "TB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    raise ValueError(f"{count} is no number of bytes")


def rate_text(count: int, seconds: float) -> str:
    """Bytes a second; of next to no time, none that is made of noise."""
    return f"{size_text(round(count / max(seconds, 1e-3)))}/s"


def time_text(seconds: int | float) -> str:
    """A duration: "0.3 s", "12 s", "3:05 min", "2:04:09 h"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d} h"


@contextlib.contextmanager
def progress(
    look: Callable[[], str],
    stream: TextStream | None = None,
    *,
    delay: float = DELAY,
    redraw: float = _REDRAW,
    every: float = _LINE,
) -> Iterator[None]:
    """Show how far a task is, from a thread, once it takes longer than `delay` seconds.

    On a terminal one line is written over and over, and gone at the end; elsewhere a line appears
    every `every` seconds. A task that is quick shows nothing.

    Args:
        look: gives the line; called from another thread.
        stream: standard error by default.
        delay: seconds before the first line.
        redraw: seconds between lines on a terminal.
        every: seconds between lines elsewhere.
    """
    to: TextStream = sys.stderr if stream is None else stream
    end = threading.Event()
    thread = threading.Thread(
        target=_show, args=(look, to, end, delay, redraw if to.isatty() else every), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _show(
    look: Callable[[], str], stream: TextStream, end: threading.Event, delay: float, period: float
) -> None:
    begun = time.monotonic()
    width = 0
    wait = delay
    while not end.wait(wait):
        wait = period
        line = f"{look()} · {time_text(time.monotonic() - begun)}"
        if stream.isatty():
            width = max(width, len(line))
            print(f"\r{line:<{width}}", end="", file=stream, flush=True)
        else:
            print(line, file=stream, flush=True)
    if width:
        print("\r" + " " * width, end="\r", file=stream, flush=True)
