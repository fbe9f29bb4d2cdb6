"""A check: something that is run, and passes or says what is wrong."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

FAILURES = (
    AssertionError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    OSError,
    RuntimeError,
    MemoryError,
    ImportError,
)
"""What a check may raise: a difference that was found, or whatever broken data make of a read."""


@dataclass(frozen=True)
class Check:
    """One thing to be checked."""

    group: str
    """The heading it is reported under."""

    name: str
    """What is checked, in a few words."""

    run: Callable[[], str]
    """Does it; returns what was covered, or raises one of `FAILURES`."""


@dataclass(frozen=True)
class CheckResult:
    """How a check went."""

    group: str
    name: str
    passed: bool
    covered: str
    """What was covered, when it passed."""
    failure: str
    """What differs first, when it failed."""
    seconds: float


def run_check(check: Check) -> CheckResult:
    """Run one check; what goes wrong in it becomes its result."""
    started = time.perf_counter()
    covered, failure = "", ""
    try:
        covered = check.run()
    except FAILURES as error:
        notes = getattr(error, "__notes__", [])
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        failure = "\n".join([f"{kind}{error}", *notes])
    seconds = time.perf_counter() - started
    return CheckResult(check.group, check.name, not failure, covered, failure, seconds)


def run_checks(checks: Iterable[Check]) -> Iterator[CheckResult]:
    """Run checks one after the other; each result comes when it is known."""
    return (run_check(check) for check in checks)
