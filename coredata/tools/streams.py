"""Standard output and error of a command: there always, and quiet when nobody reads them."""

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator


def open_missing() -> None:
    """Stand in for standard output and error that were closed (`>&-`): what is printed is lost.

    Descriptors 0 to 2 are opened where they are not, so that no file that the command opens is
    taken for one of them.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest that is free, which is this one
            os.set_inheritable(opened, True)  # by worker processes too
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def discard_output() -> None:
    """Nobody reads standard output any more: what is still to be printed is lost, quietly."""
    try:
        number = sys.stdout.fileno()
    except io.UnsupportedOperation:  # A stream of the caller's own.
        return
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, number)
    os.close(quiet)


@contextlib.contextmanager
def warnings_in_one_line(command: str) -> Iterator[None]:
    """Print warnings as notes of a command, without the line of code that they come from."""

    def line(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        return f"coredata {command}: warning: {' '.join(str(message).split())}\n"

    before = warnings.formatwarning
    warnings.formatwarning = line
    try:
        yield
    finally:
        warnings.formatwarning = before
