"""Requests for objects of any file system, tried again where that helps, and counted."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from coredata.storage.block_checksums import BlockChecksums
from coredata.storage.connection import Connection, ObjectFacts, same_system
from coredata.storage.counters import Tally
from coredata.storage.options import ReadOptions, file_system_options
from coredata.storage.retry import Retry

T = TypeVar("T")

_FEW = 8
"""Objects that are asked for one by one."""


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
        self._known: dict[str, RemoteObject] = {}

    def open(self, url: str, storage_options: Mapping[str, Any] | None) -> RemoteObject:
        """The object at `url`, as it is now.

        Raises:
            FileNotFoundError: there is none.
            PermissionError: it may not be looked at.
            StorageError: its storage does not answer, or does not know its size.
        """
        known = self._known.get(url)
        if known is not None and known.storage_options == storage_options:
            return known
        connection = self._connection(url, storage_options)
        facts = self._retried(url, connection, lambda: connection.facts(url))
        return RemoteObject(url, facts, storage_options)

    @contextlib.contextmanager
    def looked_up(
        self, urls: Sequence[str], storage_options: Mapping[str, Any] | None
    ) -> Iterator[None]:
        """Look all of these objects up together; in the `with` block `open` takes what was found.

        Objects of one directory are listed, others are asked for at the same time. What is missing
        or cannot be looked at is left to `open`, which says so.

        Raises:
            StorageError: storage does not answer.
        """
        with ThreadPoolExecutor(self._options.requests, "coredata-look") as pool:
            groups: dict[str, list[str]] = {}
            for url in dict.fromkeys(urls):
                groups.setdefault(url.rpartition("/")[0], []).append(url)
            listings = pool.map(lambda group: self._listed(group, storage_options), groups.values())
            found = {url: facts for listing in listings for url, facts in listing.items()}
            rest = [url for url in urls if url not in found]
            for url, facts in zip(
                rest, pool.map(lambda url: self._facts(url, storage_options), rest), strict=True
            ):
                if facts is not None:
                    found[url] = facts
        self._known.update(
            {url: RemoteObject(url, facts, storage_options) for url, facts in found.items()}
        )
        try:
            yield
        finally:
            for url in found:
                self._known.pop(url, None)

    def _listed(
        self, urls: list[str], storage_options: Mapping[str, Any] | None
    ) -> dict[str, ObjectFacts]:
        connection = self._connection(urls[0], storage_options)
        if len(urls) < _FEW:
            return {}
        with contextlib.suppress(PermissionError):  # to list; to read may be allowed
            what = f"list {urls[0].rpartition('/')[0]}"
            return self._retried(what, connection, lambda: connection.listed(urls))
        return {}

    def _facts(self, url: str, storage_options: Mapping[str, Any] | None) -> ObjectFacts | None:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            return self.open(url, storage_options).facts
        return None

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
