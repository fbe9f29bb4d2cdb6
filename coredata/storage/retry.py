"""Trying again: pauses that grow, with jitter, up to a deadline."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from coredata.storage.block_checksums import ChecksumError
from coredata.storage.faults import (
    Fault,
    NoRangesError,
    ObjectChangedError,
    StorageError,
    client_errors,
    understand,
)

T = TypeVar("T")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
_DAMAGED_TRIES = 3


@dataclass(frozen=True)
class Retry:
    """Rules for one kind of request.

    The n-th pause is half to all of 0.1 · 2ⁿ seconds, at most 10, at random, so that many
    processes that failed together do not come back together.

    Attributes:
        deadline: seconds for all tries and pauses.
        clock: seconds that pass, from any beginning.
        sleep: waits so many seconds.
        jitter: random numbers, 0 to 1; they decide times alone, never results.
    """

    deadline: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default_factory=lambda: random.Random().random)

    def run(
        self,
        what: str,
        attempt: Callable[[], T],
        renew: Callable[[], None],
        retried: Callable[[], None],
    ) -> T:
        """The result of `attempt`, tried as often as its errors and the deadline allow.

        Args:
            what: what is asked for, for errors: "bytes 0 … 99 of s3://bucket/key".
            attempt: does it once.
            renew: makes new credentials be read; called where the old ones have expired.
            retried: called before each further try.

        Raises:
            FileNotFoundError: there is no such object.
            PermissionError: the credentials do not allow it, or have expired.
            ObjectChangedError: it is not the object that was opened.
            NoRangesError: no parts of it can be had.
            ChecksumError: bytes came three times that are not those that were written.
            StorageError: anything else that does not pass, or did not before the deadline.
        """
        begun = self.clock()
        tries, doubts, damaged = 0, 0, 0
        while True:
            try:
                return attempt()
            except client_errors() as error:
                tries += 1
                fault = understand(error)
                doubts += fault.meaning == "doubtful"
                damaged += fault.meaning == "damaged"
                passing = fault.meaning in ("again", "expired", "damaged") or doubts == 1
                last = not passing or damaged == _DAMAGED_TRIES
                pause = min(_FIRST_PAUSE * 2.0 ** min(tries - 1, 20), _LONGEST_PAUSE)
                pause *= 0.5 + 0.5 * self.jitter()
                spent = self.clock() - begun
                if last or spent + pause > self.deadline:
                    raise _given_up(what, fault, tries, spent) from error
                if fault.meaning in ("expired", "doubtful"):
                    renew()
            retried()
            self.sleep(pause)


def _given_up(what: str, fault: Fault, tries: int, spent: float) -> OSError:
    if fault.meaning == "missing":
        return FileNotFoundError(f"{what}: there is no such object: {fault.reason}")
    if fault.meaning == "forbidden":
        return PermissionError(
            f"{what}: access is forbidden: {fault.reason}. Check the credentials that the process "
            "has, and what they may read"
        )
    if fault.meaning == "changed":
        return ObjectChangedError(
            f"{what}: the object has changed since it was opened: {fault.reason}. Data must not "
            "change during a run; start again with the new object, or bring back the old one"
        )
    if fault.meaning == "whole":
        return NoRangesError(f"{what}: {fault.reason}")
    if fault.meaning == "damaged":
        return ChecksumError(
            f"{what}: {fault.reason}, {tries} times: what is stored is damaged. Write it again, or "
            "copy it again from where it is sound"
        )
    if fault.meaning == "expired":
        return PermissionError(
            f"{what}: the credentials have expired, and were not renewed within {spent:.0f} s "
            f"({tries} tries): {fault.reason}. Renew them where the client reads them "
            "(environment, profile, role)"
        )
    if fault.meaning == "again":
        return StorageError(
            f"{what}: failed {tries} times in {spent:.1f} s, the last time with {fault.reason}. "
            'Go on later, or allow more time: storage_options={"coredata": {"deadline": 600}}'
        )
    return StorageError(f"{what}: the request was refused: {fault.reason}")
