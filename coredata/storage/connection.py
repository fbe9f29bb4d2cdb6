"""An fsspec file system in this process, and single requests through it."""

import functools
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final
from urllib.parse import urlsplit

from coredata.storage.faults import NoRangesError, ObjectChangedError, ShortBodyError
from coredata.storage.options import ReadOptions
from coredata.storage.remote import filesystem, reading_options

_VERSION_FIELDS = (
    "ETag",
    "etag",
    "generation",
    "content_settings",
    "LastModified",
    "last_modified",
    "Last-Modified",
    "mtime",
    "updated",
    "created",
)

_PAGE = 1000
_WORTH_A_LISTING = 8
"""Objects that a listing must save requests for."""


@dataclass(frozen=True)
class ObjectFacts:
    """Which object it is.

    Attributes:
        size: in bytes.
        version: what changes when it is written again: an ETag, or a time; "" if unknown.
        demand: the ETag that requests can demand (If-Match); "" if none.
    """

    size: int
    version: str
    demand: str


@final
class Connection:
    """Requests to one file system. Threads may share it; a forked process makes its own.

    Nothing is tried twice here; see `Retry`.

    Args:
        url: of any file of the file system.
        storage_options: for fsspec, and for reading.
        options: how to read.
    """

    def __init__(
        self, url: str, storage_options: Mapping[str, Any] | None, options: ReadOptions
    ) -> None:
        self._url = url
        self._options = options
        self._storage_options = reading_options(url, storage_options, 2 * options.requests)
        self._lock = threading.Lock()
        self._opened: Any = None
        self._checked: dict[str, float] = {}

    def facts(self, url: str) -> ObjectFacts:
        """Size and version of an object, as its storage has them now.

        Raises:
            FileNotFoundError: no such object, or a directory.
            NoRangesError: its size is not known.
            Exception: whatever the file system raises.
        """
        remote, key = self._system(url)
        if _is_asynchronous(remote):
            refresh = {"refresh": True} if _speaks(remote, "s3") else {}
            found = self._wait(remote, lambda: remote._info(key, **refresh))
        else:
            found = remote.info(key)
        if found.get("type") == "directory":
            raise FileNotFoundError(f"{url} is a directory, and an object was expected")
        if not isinstance(found.get("size"), int):
            raise NoRangesError(
                "its size is not known, so no part of it can be asked for. Serve it from a "
                "server that gives Content-Length, or copy it to a local disk"
            )
        self._checked[url] = time.monotonic()
        return _facts(found, _speaks(remote, "s3") or _speaks(remote, "http"))

    def listed(self, urls: Sequence[str]) -> dict[str, ObjectFacts]:
        """The same for many objects of one directory, as far as listings tell it cheaply.

        One request lists up to a thousand objects. It stops where that costs more than to ask for
        one object at a time, so some may be left out; all of them where there is no S3.

        Raises:
            Exception: whatever the file system raises.
        """
        remote, _ = self._system(urls[0])
        if not _speaks(remote, "s3"):
            return {}
        by_key = {remote.split_path(remote._strip_protocol(url))[1]: url for url in urls}
        bucket, first, _ = remote.split_path(remote._strip_protocol(urls[0]))
        directory = first[: first.rfind("/") + 1]
        wanted, found = sorted(by_key), {}

        def page_after(key: str) -> Awaitable[Any]:
            where = {"Bucket": bucket, "Prefix": directory, "StartAfter": key}
            return remote._call_s3("list_objects_v2", MaxKeys=_PAGE, **where)

        while wanted:
            before = wanted[0][:-1]
            page = self._wait(remote, functools.partial(page_after, before))
            entries = {entry["Key"]: entry for entry in page.get("Contents", [])}
            last = max(entries, default="")
            passed = [key for key in wanted if key <= last or not page.get("IsTruncated")]
            for key in passed:
                if key in entries:
                    entry = {"size": entries[key]["Size"], "ETag": entries[key]["ETag"]}
                    found[by_key[key]] = _facts(entry, True)
            wanted = wanted[len(passed) :]
            if len(passed) < _WORTH_A_LISTING:
                break
        return found

    def fetch(self, url: str, facts: ObjectFacts, start: int, stop: int) -> bytes:
        """Bytes `start … stop` of an object.

        Raises:
            ObjectChangedError: it is another object than `facts` are of.
            ShortBodyError: fewer bytes came.
            NoRangesError: more bytes came.
            Exception: whatever the file system raises.
        """
        remote, key = self._system(url)
        if not facts.demand:
            self._check(url, facts)
        if not _is_asynchronous(remote):
            data = remote.cat_file(key, start=start, end=stop)
        elif facts.demand and _speaks(remote, "s3"):
            data = self._wait(remote, lambda: _s3_range(remote, key, facts.demand, start, stop))
        else:
            headers = self._headers(remote, facts)
            data = self._wait(
                remote, lambda: remote._cat_file(key, start=start, end=stop, **headers)
            )
        if len(data) < stop - start:
            raise ShortBodyError(f"{len(data)} bytes came instead of {stop - start}")
        if len(data) > stop - start:
            raise NoRangesError(
                f"{len(data)} bytes came instead of {stop - start}; the server seems to ignore "
                "ranges. Read it through one that does not, or copy the file to a local disk"
            )
        return bytes(data)

    def renew(self) -> None:
        """Forget the file system, so that the next request reads the credentials again."""
        with self._lock:
            self._opened = None

    def _system(self, url: str) -> tuple[Any, str]:
        with self._lock:
            if self._opened is None:
                self._opened, _ = filesystem(self._url, self._storage_options)
                if _speaks(self._opened, "s3"):
                    self._opened.retries = 1
                    self._opened.connect()  # no part of a try: it loads the client's code
            return self._opened, self._opened._strip_protocol(url)

    def _check(self, url: str, facts: ObjectFacts) -> None:
        """From time to time, look whether an object is still the same."""
        if time.monotonic() - self._checked.get(url, 0.0) < self._options.recheck:
            return
        remote, key = self._system(url)
        remote.invalidate_cache(remote._parent(key))
        found = self.facts(url)
        if found != facts:
            raise ObjectChangedError(
                f"it had {facts.size} bytes (version {facts.version or 'unknown'}), and has "
                f"{found.size} (version {found.version or 'unknown'})"
            )

    def _headers(self, remote: Any, facts: ObjectFacts) -> dict[str, Any]:
        if not (facts.demand and _speaks(remote, "http")):
            return {}
        given = remote.kwargs.get("headers", {})
        return {"headers": {**given, "If-Match": facts.demand}}

    def _wait(self, remote: Any, make: Callable[[], Awaitable[Any]]) -> Any:
        """The result of a coroutine on fsspec's own loop, within the time of one try."""
        import asyncio

        import fsspec.asyn

        async def limited() -> Any:
            return await asyncio.wait_for(make(), self._options.timeout)

        return fsspec.asyn.sync(remote.loop, limited)


def same_system(url: str) -> str:
    """What URLs have in common that one file system reads: scheme and host or bucket."""
    if "::" in url:
        return url
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{'?' if parts.query else ''}"


def _speaks(remote: Any, protocol: str) -> bool:
    spoken = remote.protocol
    return protocol == spoken if isinstance(spoken, str) else protocol in spoken


def _is_asynchronous(remote: Any) -> bool:
    """Whether requests run on fsspec's own loop, and can be interrupted.

    Not those of the multi-storage-client: it waits in threads of its own, which a forked process
    lacks, so that it would wait for ever there.
    """
    return bool(remote.async_impl) and not _speaks(remote, "msc")


def _facts(found: Mapping[str, Any], conditional: bool) -> ObjectFacts:
    version = next((str(found[name]) for name in _VERSION_FIELDS if found.get(name)), "")
    tag = str(found.get("ETag") or "")
    strong = conditional and bool(tag) and not tag.startswith("W/")
    return ObjectFacts(found["size"], version, tag if strong else "")


async def _s3_range(remote: Any, key: str, tag: str, start: int, stop: int) -> bytes:
    """A range of an S3 object, only if its ETag is `tag`; s3fs's own call cannot ask for that."""
    bucket, name, version = remote.split_path(key)
    which = {"VersionId": version} if version else {}
    answer = await remote._call_s3(
        "get_object",
        Bucket=bucket,
        Key=name,
        Range=f"bytes={start}-{stop - 1}",
        IfMatch=tag,
        **which,
    )
    async with answer["Body"] as body:
        return await body.read()
