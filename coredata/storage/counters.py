"""Counters that threads share."""

import threading
from dataclasses import dataclass, fields, replace
from typing import final


@dataclass(frozen=True)
class Counters:
    """What was read through one cache, since its process began to.

    Attributes:
        requests: ranges asked of storage, further tries included.
        bytes_fetched: bytes that came from storage.
        bytes_used: bytes that readers were given.
        hits: ranges that lay in memory when they were asked for.
        waits: ranges that had to be waited for.
        retries: tries after a first one.
        bytes_from_disk: bytes that came from blocks on the local disk.
        evicted: fetched stretches that were let go for others.
        held: bytes held at this moment.
    """

    requests: int = 0
    bytes_fetched: int = 0
    bytes_used: int = 0
    hits: int = 0
    waits: int = 0
    retries: int = 0
    bytes_from_disk: int = 0
    evicted: int = 0
    held: int = 0


@final
class Tally:
    """Adds up; any thread may add."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys((field.name for field in fields(Counters)), 0)

    def add(self, **more: int) -> None:
        """Add to some counters."""
        with self._lock:
            for name, number in more.items():
                self._counts[name] += number

    def counters(self, held: int, evicted: int) -> Counters:
        """All counters as they are now."""
        with self._lock:
            return replace(Counters(**self._counts), held=held, evicted=evicted)
