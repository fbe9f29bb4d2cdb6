"""How far a run is, on a terminal or as lines in a log."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from coredata.preprocess.board import Totals

_PERIOD = 0.5


@runtime_checkable
class TextStream(Protocol):
    """What progress is printed to: `sys.stderr`, any open text file, a `StringIO`."""

    def write(self, text: str, /) -> Any:
        """Take text."""
        ...

    def flush(self) -> Any:
        """Show what was taken."""
        ...

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...


@dataclass(frozen=True)
class ProgressLine:
    """One look at a run.

    Attributes:
        done: so far, in this run and in an interrupted one before it.
        before: what was done when this run began.
        input_bytes: size of the whole input.
        seconds: since this run began.
    """

    done: Totals
    before: Totals
    input_bytes: int
    seconds: float

    def __str__(self) -> str:
        seconds = max(self.seconds, 1e-9)
        text = (self.done.text_bytes - self.before.text_bytes) / 1e6 / seconds
        tokens = (self.done.tokens - self.before.tokens) / seconds
        share = self.done.input_bytes / max(self.input_bytes, 1)
        return (
            f"{self.done.documents:,} documents ({share:.0%}), {text:,.1f} MB/s, "
            f"{tokens:,.0f} tokens/s, {self._time_left()}"
        )

    def _time_left(self) -> str:
        progressed = self.done.input_bytes - self.before.input_bytes
        if progressed <= 0:
            return "time left unknown"
        left = self.seconds * max(self.input_bytes - self.done.input_bytes, 0) / progressed
        hours, rest = divmod(round(left), 3600)
        return f"{hours}:{rest // 60:02d}:{rest % 60:02d} left"


class ProgressPrinter:
    """Prints progress from a thread of its own, at most twice a second.

    On a terminal one line is written over and over; elsewhere a line appears whenever
    `log_interval` more documents are done. Without either it does nothing, and there is no
    thread. Use it as a context manager.

    Args:
        look: gives what is done so far.
        input_bytes: size of the whole input.
        stream: where to print.
        log_interval: documents between lines; None to print on terminals only.
    """

    def __init__(
        self,
        look: Callable[[], Totals],
        input_bytes: int,
        stream: TextStream,
        log_interval: int | None = None,
    ) -> None:
        self._look = look
        self._input_bytes = input_bytes
        self._stream = stream
        self._interval = log_interval
        self._rewrites = log_interval is None and stream.isatty()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "ProgressPrinter":
        if self._rewrites or self._interval is not None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        begun = time.monotonic()
        before = self._look()
        printed = before.documents
        width = 0
        while not self._end.wait(_PERIOD):
            done = self._look()
            line = str(ProgressLine(done, before, self._input_bytes, time.monotonic() - begun))
            if self._rewrites:
                width = max(width, len(line))
                print(f"\r{line:<{width}}", end="", file=self._stream, flush=True)
            elif self._interval is not None and done.documents - printed >= self._interval:
                printed = done.documents
                print(line, file=self._stream, flush=True)
        if width:
            print("\r" + " " * width, end="\r", file=self._stream, flush=True)
