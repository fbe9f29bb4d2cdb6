"""Storage that fails on purpose: a proxy in front of a real HTTP or S3 server on this machine.

with FaultProxy("http://127.0.0.1:9000") as proxy:
    proxy.set(delay(0.05), status(503, times=2, match=r"^GET .*\\.bin "))
    read_something(endpoint_url=proxy.url)
    assert proxy.counters().faults["status"] == 2
"""

import dataclasses
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final
from urllib.parse import urlsplit

Kind = Literal[
    "delay", "status", "reset", "short", "shrunk", "stall", "flip", "changed", "no_range"
]

EVERY = ""
"""The pattern that matches every request."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong with the requests that it matches.

    Attributes:
        kind: what goes wrong; the functions of this module say more.
        match: a regular expression that is searched for in the head of the request, for example
            `r"^GET .*\\.bin "` or `"Credential=oldkey/"`.
        times: how many requests suffer; None for all.
        skip: how many that match are let through first.
        seconds: how long a delay or a stall lasts.
        status: the status that is answered.
        code: the S3 error code in the body of that answer.
        at_byte: the byte of the body where it happens; None for before the answer.
    """

    kind: Kind
    match: str = EVERY
    times: int | None = None
    skip: int = 0
    seconds: float | int = 0.0
    status: int = 0
    code: str = ""
    at_byte: int | None = None


def delay(seconds: float | int, match: str = EVERY, **when: Any) -> Fault:
    """Latency: each request waits, then is answered. Goes together with one other fault."""
    return Fault("delay", match, seconds=seconds, **when)


def status(code: int, match: str = EVERY, **when: Any) -> Fault:
    """An answer of 500, 503 or 429 and the S3 error code that belongs to it."""
    return Fault("status", match, status=code, code=_CODES.get(code, "InternalError"), **when)


_CODES = {
    403: "AccessDenied",
    404: "NoSuchKey",
    412: "PreconditionFailed",
    429: "TooManyRequests",
    500: "InternalError",
    503: "SlowDown",
}


def reset(match: str = EVERY, at_byte: int | None = None, **when: Any) -> Fault:
    """The connection is reset: before the answer, or in the middle of the body."""
    return Fault("reset", match, at_byte=at_byte, **when)


def short_body(at_byte: int, match: str = EVERY, **when: Any) -> Fault:
    """The body ends too soon, and the connection with it; its length was announced rightly."""
    return Fault("short", match, at_byte=at_byte, **when)


def shrunk_body(at_byte: int, match: str = EVERY, **when: Any) -> Fault:
    """The body is too short and says so: nothing but the range that was asked for shows it."""
    return Fault("shrunk", match, at_byte=at_byte, **when)


def stall(
    seconds: float | int, match: str = EVERY, at_byte: int | None = None, **when: Any
) -> Fault:
    """Silence, before the answer or in the middle of the body, then a reset."""
    return Fault("stall", match, seconds=seconds, at_byte=at_byte, **when)


def flipped_byte(at_byte: int, match: str = r"^GET ", **when: Any) -> Fault:
    """One byte of the body differs; nothing in the answer shows it."""
    return Fault("flip", match, at_byte=at_byte, **when)


def forbidden(match: str = EVERY, **when: Any) -> Fault:
    """403 AccessDenied."""
    return status(403, match, **when)


def missing(match: str = EVERY, **when: Any) -> Fault:
    """404 NoSuchKey."""
    return status(404, match, **when)


def expired_credentials(match: str = EVERY, **when: Any) -> Fault:
    """What S3 answers to a session token that has expired: 400 ExpiredToken.

    To let the renewed credentials pass, match the old ones: `"Credential=oldkey/"`.
    """
    return Fault("status", match, status=400, code="ExpiredToken", **when)


def changed_object(match: str = r"^(GET|HEAD) ", **when: Any) -> Fault:
    """The object seems to be another one: a new ETag, and 412 where the old one is demanded."""
    return Fault("changed", match, status=412, code="PreconditionFailed", **when)


def ignored_range(match: str = r"^GET ", **when: Any) -> Fault:
    """The whole object comes instead of a range. For plain HTTP; it spoils S3's signatures."""
    return Fault("no_range", match, **when)


@dataclass(frozen=True)
class Request:
    """One request that the proxy saw: `("GET", "/bucket/key", "bytes=0-99")`."""

    method: str
    target: str
    range: str


@dataclass(frozen=True)
class Counters:
    """What a proxy has seen since it was started or cleared.

    Attributes:
        requests: all requests, in the order in which they came.
        faults: how many requests each kind of fault met.
        body_bytes: bytes of answers' bodies that were passed on.
        most_at_once: the largest number of requests that were under way together.
    """

    requests: tuple[Request, ...]
    faults: Mapping[str, int]
    body_bytes: int
    most_at_once: int

    def count(self, method: str, suffix: str = "") -> int:
        """How many requests had this method, and a path that ends so."""
        return sum(
            r.method == method and r.target.partition("?")[0].endswith(suffix)
            for r in self.requests
        )


@final
class FaultProxy:
    """A proxy on loopback, in a process of its own, that ends with the `with` block.

    Threads may share it. A forked child may send requests through it, but not steer it.

    Args:
        upstream: `http://127.0.0.1:PORT` of the server behind it.
        port: the port to listen at; 0 for any free one.
    """

    def __init__(self, upstream: str, port: int = 0) -> None:
        server = str(Path(__file__).with_name("fault_server.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-I", server, str(urlsplit(upstream).port or 80), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lock = threading.Lock()
        self.port: int = self._read()["port"]

    @property
    def url(self) -> str:
        """What clients are to use as the server's URL."""
        return f"http://127.0.0.1:{self.port}"

    def set(self, *faults: Fault) -> None:
        """What goes wrong from now on, instead of what did; the first that matches is taken."""
        self._tell({"do": "set", "rules": [dataclasses.asdict(fault) for fault in faults]})

    def counters(self) -> Counters:
        """What was seen since the start, or since `clear`."""
        seen = self._tell({"do": "count"})
        requests = tuple(Request(*request) for request in seen.pop("requests"))
        return Counters(requests=requests, **seen)

    def clear(self) -> None:
        """Start counting anew."""
        self._tell({"do": "clear"})

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None and self._process.stdout is not None:
            self._process.stdin.close()
            self._process.stdout.close()
        self._process.terminate()
        self._process.wait(timeout=10)

    def __enter__(self) -> "FaultProxy":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _tell(self, command: dict[str, Any]) -> dict[str, Any]:
        if self._process.stdin is None:
            raise ValueError("the proxy has no standard input")
        with self._lock:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            return self._read()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError(f"the proxy has ended (exit code {self._process.wait()})")
        return json.loads(line)
