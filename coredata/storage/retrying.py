"""Which failures of remote storage pass by themselves, and trying again until they do."""

import errno
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

_T = TypeVar("_T")

_PASSING_ERRNO = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EPIPE,
        errno.ETIMEDOUT,
        errno.ECONNRESET,
        errno.ECONNREFUSED,
        errno.ECONNABORTED,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        getattr(errno, "EREMOTEIO", errno.EBUSY),
    }
)
_PASSING_CLASSES = frozenset(
    {
        "ClientConnectionError",  # aiohttp
        "ClientPayloadError",
        "HTTPClientError",  # botocore
        "ResponseParserError",
        "IncompleteRead",  # http.client
        "ProtocolError",  # urllib3
    }
)
"""Names of classes, so that no back-end has to be imported to recognise its errors."""

_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class ShortBodyError(OSError):
    """An answer whose body has not the length that was asked for; it is never used."""


class StorageError(OSError):
    """Remote storage that failed for longer than a deadline. Its text names URL and range."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long, and how patiently, a failing request is tried again.

    Waits double from `first_wait` up to `longest_wait`, each shortened at random by up to half,
    so that many clients do not come back together. All values are in seconds.
    """

    deadline: float | int = 120.0
    first_wait: float | int = 0.1
    longest_wait: float | int = 10.0


def is_transient(error: BaseException) -> bool:
    """Whether the same request may well succeed a little later.

    Timeouts, broken connections, short bodies and the answers 408, 425, 429 and 5xx are; missing
    objects, refusals and expired credentials are not, nor is anything unknown.
    """
    if isinstance(error, FileNotFoundError | PermissionError):
        return False
    status = http_status(error)
    if status is not None:
        return status in _PASSING_STATUS
    if isinstance(error, ConnectionError | TimeoutError | ShortBodyError):
        return True
    names = {base.__name__ for one in _chain(error) for base in type(one).__mro__}
    if names & _PASSING_CLASSES:
        return True
    return isinstance(error, OSError) and error.errno in _PASSING_ERRNO


def http_status(error: BaseException) -> int | None:
    """The HTTP status that a back-end's error carries, if it does."""
    for one in _chain(error):
        answer = getattr(one, "response", None)  # botocore
        if isinstance(answer, dict):
            found = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        else:
            found = getattr(one, "status", None)  # aiohttp
        if isinstance(found, int):
            return found
    return None


def call(
    operation: Callable[[], _T],
    what: str,
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], Any] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> _T:
    """The result of `operation`, tried again while it fails transiently and the deadline allows.

    Args:
        operation: what to do; safe to repeat.
        what: the request in words, with URL and range, such as "bytes 0 to 9 of s3://b/k".
        policy: deadline and waits.
        sleep: waits so many seconds.
        clock: seconds that only grow.

    Raises:
        StorageError: transient failures until the deadline.
        FileNotFoundError, PermissionError: the object is missing, or may not be read.
    """
    begun = clock()
    for attempts, wait in enumerate(waits(policy), 1):
        try:
            return operation()
        except Exception as error:
            if not is_transient(error):
                raise explained(error, what) from error
            elapsed = clock() - begun
            if elapsed + wait > policy.deadline:
                raise gave_up(error, what, attempts, elapsed) from error
        sleep(wait)
    raise StorageError(f"{what}: no attempt was made")


def waits(policy: RetryPolicy) -> Iterator[float]:
    """Seconds to wait after each failed attempt, without end."""
    wait = policy.first_wait
    # Jitter is not to be reproducible: clients that fail together must not retry together.
    source = random.SystemRandom()
    while True:
        yield wait * (1 - source.random() / 2)
        wait = min(2 * wait, policy.longest_wait)


def gave_up(error: BaseException, what: str, attempts: int, elapsed: float) -> StorageError:
    """The error for a request that kept failing."""
    return StorageError(
        f"{what}: failed {attempts} times in {elapsed:.1f} s, the last time with "
        f"{_described(error)}; look after the storage service, or allow a longer deadline"
    )


def explained(error: Exception, what: str) -> Exception:
    """An error that is not retried, with what was asked for; other kinds come as they are."""
    status = http_status(error)
    if isinstance(error, FileNotFoundError) or status == 404:
        return FileNotFoundError(
            errno.ENOENT, f"{what}: there is no such object (404; {_described(error)})"
        )
    if isinstance(error, PermissionError) or status in (401, 403):
        return PermissionError(
            errno.EACCES,
            f"{what}: access is refused ({status or 403}; {_described(error)}); check the "
            "credentials in storage_options or in the environment, and whether they have expired",
        )
    return error


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__
