"""What an error of a file system means: try again, or give up, and what to say.

Clients of object stores raise errors of their own, wrapped in one another. What they have in
common is an HTTP status, and for S3 an error code; both are looked for along the chain of causes.
"""

import errno
import http.client
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from coredata.storage.block_checksums import ChecksumError

Meaning = Literal[
    "again", "expired", "doubtful", "damaged", "forbidden", "missing", "changed", "whole", "refused"
]

_CLIENTS = (
    ("aiohttp", ("ClientError",)),
    ("botocore.exceptions", ("BotoCoreError", "ClientError")),
    ("botocore.parsers", ("ResponseParserError",)),
    ("gcsfs.retry", ("HttpError",)),
    ("google.auth.exceptions", ("GoogleAuthError",)),
    ("azure.core.exceptions", ("AzureError",)),
)
_TRANSPORT = (
    ("aiohttp", ("ClientError",)),
    (
        "botocore.exceptions",
        ("HTTPClientError", "ConnectionError", "IncompleteReadError"),
    ),
    ("botocore.parsers", ("ResponseParserError",)),
    ("google.auth.exceptions", ("TransportError",)),
    ("azure.core.exceptions", ("ServiceRequestError", "ServiceResponseError")),
)
_AGAIN_STATUS = frozenset((408, 429, 500, 502, 503, 504, 509, 529))
_AGAIN_CODES = frozenset(
    (
        "InternalError",
        "OperationAborted",
        "RequestTimeout",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "TooManyRequests",
    )
)
_EXPIRED_CODES = frozenset(
    ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired")
)
_AGAIN_ERRNO = frozenset(
    (
        errno.EAGAIN,
        errno.EBUSY,
        errno.ECONNABORTED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.EIO,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.ETIMEDOUT,
        121,  # EREMOTEIO on Linux: what s3fs makes of S3's InternalError
    )
)


class StorageError(OSError):
    """Bytes of an object could not be had; the text names URL, range and reason."""


class ShortBodyError(OSError):
    """A body that is shorter than the range that was asked for; it is fetched again."""


class ObjectChangedError(StorageError):
    """An object is not the one that was opened: it was written again while it was in use."""


class NoRangesError(StorageError):
    """An object of which no parts can be had: its size is not known, or ranges are ignored."""


def client_errors() -> tuple[type[Exception], ...]:
    """What file systems raise when a request fails: OSErrors, and errors of loaded clients."""
    return OSError, EOFError, http.client.HTTPException, *_loaded(_CLIENTS)


@dataclass(frozen=True)
class Fault:
    """An error of a file system, understood.

    Attributes:
        meaning: "again" may pass by itself; "expired" needs new credentials; "doubtful" may be
            that, or may not; "damaged" bytes may come right another time; the others do not pass.
        reason: what happened, in few words.
    """

    meaning: Meaning
    reason: str


def understand(error: BaseException) -> Fault:
    """What `error` means."""
    chain = list(_chain(error))
    codes = {code for link in chain if (code := _code(link))}
    statuses = {status for link in chain if (status := _status(link))}
    reason = _reason(error, statuses, codes)
    if isinstance(error, ChecksumError):
        return Fault("damaged", str(error))
    if isinstance(error, NoRangesError):
        return Fault("whole", str(error))
    if codes & _EXPIRED_CODES:
        return Fault("expired", reason)
    if 412 in statuses or 416 in statuses or isinstance(error, ObjectChangedError):
        return Fault("changed", reason)
    # fsspec calls a file on the web missing whatever the server said to its HEAD and GET.
    if 404 in statuses or (isinstance(error, FileNotFoundError) and not statuses):
        return Fault("missing", reason)
    if isinstance(error, PermissionError) or 403 in statuses:
        return Fault("forbidden", reason)
    if 401 in statuses or (400 in statuses and not codes - {"400"}):
        return Fault("doubtful", reason)  # an answer to HEAD has no body, and so no code
    if statuses & _AGAIN_STATUS or codes & _AGAIN_CODES:
        return Fault("again", reason)
    if statuses:
        return Fault("refused", reason)
    return Fault("again" if _is_trouble(error) else "refused", reason)


def _is_trouble(error: BaseException) -> bool:
    passing = (TimeoutError, ConnectionError, EOFError, http.client.HTTPException, ShortBodyError)
    if isinstance(error, (*passing, *_loaded(_TRANSPORT))):
        return True
    return isinstance(error, OSError) and error.errno in _AGAIN_ERRNO


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _code(error: BaseException) -> str:
    """The error code of a botocore.ClientError."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Code", ""))
    return ""


def _status(error: BaseException) -> int:
    """The HTTP status that an error of aiohttp, botocore, requests, gcsfs or azure names."""
    if type(error).__module__ == "aiohttp.http_exceptions":
        return 0  # what the client makes of a broken answer; its code is not the server's
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    for holder, name in (
        (error, "status"),
        (response, "status_code"),
        (error, "status_code"),
        (error, "code"),
    ):
        found = getattr(holder, name, None)
        if isinstance(found, int) and 100 <= found < 600:
            return found
    return 0


def _reason(error: BaseException, statuses: set[int], codes: set[str]) -> str:
    named = [str(status) for status in sorted(statuses)]
    named += sorted(code for code in codes if not code.isdigit())
    text = str(error) or type(error).__name__
    kind = type(error).__name__
    return f"{' '.join(named)} ({kind}: {text})" if named else f"{kind}: {text}"


def _loaded(table: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[type[Exception], ...]:
    """The classes of a table whose modules are loaded; what is not loaded has raised nothing."""
    return tuple(
        getattr(module, name)
        for path, names in table
        if (module := sys.modules.get(path)) is not None
        for name in names
    )
