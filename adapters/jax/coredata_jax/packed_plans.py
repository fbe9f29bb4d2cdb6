"""Which segments share a row: plans of windows of samples, made as they are needed."""

import threading
from collections import OrderedDict
from typing import Any, NamedTuple, Protocol, runtime_checkable

from coredata.varlen import PackPlan

_KEPT = 16


@runtime_checkable
class Windows(Protocol):
    """Plans of rows, some samples at a time; `coredata.varlen.PackWindows` is one."""

    @property
    def limit(self) -> int:
        """Tokens of a row."""
        ...

    @property
    def window(self) -> int:
        """Samples of a window."""
        ...

    @property
    def packer(self) -> str:
        """See `coredata.varlen.PACKERS`."""
        ...

    @property
    def max_segments(self) -> int | None:
        """The most segments of a row."""
        ...

    @property
    def overflow(self) -> str:
        """What happens to a segment longer than a row."""
        ...

    def __len__(self) -> int:
        """Number of windows."""
        ...

    def plan(self, window: int) -> PackPlan:
        """The rows of one window."""
        ...


class WindowFacts(NamedTuple):
    """What is remembered of a window: its number of rows, and the digest of its plan."""

    rows: int
    digest: str


class Plans:
    """The plans of windows: the last few are kept, the facts of all that were made.

    Threads may ask at once. It pickles as its windows.
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._lock = threading.Lock()
        self._plans: OrderedDict[int, PackPlan] = OrderedDict()
        self._facts: dict[int, WindowFacts] = {}

    def __len__(self) -> int:
        """Number of windows."""
        return len(self.windows)

    def plan(self, window: int) -> PackPlan:
        """The rows of one window.

        Raises:
            ValueError: whatever packing it, or reading it for that, raises.
        """
        with self._lock:
            found = self._plans.get(window)
        if found is None:
            # Not under the lock: rows of other windows are read meanwhile.
            found = self.windows.plan(window)
            with self._lock:
                self._plans[window] = found
                self._facts[window] = WindowFacts(len(found), found.digest)
                while len(self._plans) > _KEPT:
                    self._plans.popitem(last=False)
        return found

    def facts(self, window: int) -> WindowFacts:
        """Rows and digest of a window, which is planned for it if it never was."""
        with self._lock:
            known = self._facts.get(window)
        if known is None:
            plan = self.plan(window)
            return WindowFacts(len(plan), plan.digest)
        return known

    def settings(self) -> dict[str, Any]:
        """What decides the rows, beside the samples."""
        windows = self.windows
        return {
            "sequence_length": windows.limit,
            "max_segments": windows.max_segments,
            "window": windows.window,
            "packer": windows.packer,
            "overflow": windows.overflow,
        }

    def __reduce__(self) -> tuple[type["Plans"], tuple[Windows]]:
        return Plans, (self.windows,)
