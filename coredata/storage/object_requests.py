"""Requests for objects of any file system, tried again where that helps, and counted."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from coredata.storage.block_checksums import BlockChecksums
from coredata.storage.connection import Connection, ObjectFacts, same_system
from coredata.storage.counters import Tally
from coredata.storage.options import ReadOptions, file_system_options
from coredata.storage.retry import Retry

T = TypeVar("T")


@dataclass(frozen=True)
class RemoteObject:
    """One version of an object. The same version at the same URL is in memory once."""

    url: str
    facts: ObjectFacts
    storage_options: Mapping[str, Any] | None = field(compare=False)
    checksums: BlockChecksums | None = field(default=None, compare=False)


@final
class ObjectRequests:
    """Single requests, one connection for each file system. Threads may share it."""

    def __init__(self, options: ReadOptions, tally: Tally) -> None:
        self._options = options
        self._tally = tally
        self._lock = threading.Lock()
        self._connections: dict[str, Connection] = {}

    def open(self, url: str, storage_options: Mapping[str, Any] | None) -> RemoteObject:
        """The object at `url`, as it is now.

        Raises:
            FileNotFoundError: there is none.
            PermissionError: it may not be looked at.
            StorageError: its storage does not answer, or does not know its size.
        """
        connection = self._connection(url, storage_options)
        facts = self._retried(url, connection, lambda: connection.facts(url))
        return RemoteObject(url, facts, storage_options)

    def fetch(self, what: RemoteObject, start: int, stop: int) -> bytes:
        """Bytes `start … stop` of an object, straight from storage.

        Raises:
            OSError: they could not be had; see `Retry.run`.
        """
        connection = self._connection(what.url, what.storage_options)

        def attempt() -> bytes:
            self._tally.add(requests=1)
            body = connection.fetch(what.url, what.facts, start, stop)
            if what.checksums is not None:
                what.checksums.check(what.url, start, body)
            return body

        data = self._retried(f"bytes {start} … {stop - 1} of {what.url}", connection, attempt)
        self._tally.add(bytes_fetched=len(data))
        return data

    def _retried(self, what: str, connection: Connection, attempt: Callable[[], T]) -> T:
        retry = Retry(self._options.deadline)
        return retry.run(what, attempt, connection.renew, lambda: self._tally.add(retries=1))

    def _connection(self, url: str, storage_options: Mapping[str, Any] | None) -> Connection:
        given = sorted(file_system_options(storage_options).items())
        key = f"{same_system(url)} {given!r}"
        with self._lock:
            if key not in self._connections:
                self._connections[key] = Connection(url, storage_options, self._options)
            return self._connections[key]
