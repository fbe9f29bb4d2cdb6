"""What is tried again, for how long, and what is said in the end."""

import errno
from types import SimpleNamespace

import aiohttp
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, NoCredentialsError

from coredata.storage.retrying import (
    RetryPolicy,
    ShortBodyError,
    StorageError,
    call,
    http_status,
    is_transient,
    waits,
)


def from_s3(status, code):
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = OSError(errno.EINVAL, "translated")
    error.__cause__ = ClientError(answer, "GetObject")
    return error


def from_http(status):
    asked = SimpleNamespace(real_url="http://host/k")
    return aiohttp.ClientResponseError(asked, (), status=status)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        TimeoutError(),
        ShortBodyError(),
        OSError(errno.EBUSY, "slow down"),
        OSError(errno.EREMOTEIO, "internal error"),
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientPayloadError(),
        ConnectionClosedError(endpoint_url="http://x"),
        *[from_s3(status, "Any") for status in (429, 500, 503)],
        *[from_http(status) for status in (429, 500, 502, 503)],
    ],
)
def test_what_passes_by_itself(error):
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(),
        PermissionError(),
        ValueError(),
        OSError(errno.ENOSPC, "full"),
        NoCredentialsError(),
        from_s3(400, "ExpiredToken"),
        from_s3(403, "AccessDenied"),
        from_s3(404, "NoSuchKey"),
        from_s3(412, "PreconditionFailed"),
        from_http(403),
    ],
)
def test_what_does_not(error):
    assert not is_transient(error)


def test_status_of_an_error():
    assert http_status(from_s3(503, "SlowDown")) == 503
    assert http_status(from_http(403)) == 403
    assert http_status(OSError()) is None


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.now = 0.0
        self.slept = []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def __call__(self):
        return self.now


def attempt(outcomes, deadline=10):
    policy = RetryPolicy(deadline)
    clock, left = Clock(), iter(outcomes)

    def operation():
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    result = call(operation, "bytes 5 to 9 of s3://b/k", policy, sleep=clock.sleep, clock=clock)
    return result, clock.slept


def test_waits_double_and_are_shortened_at_random():
    policy = RetryPolicy(first_wait=1.0, longest_wait=4.0)
    series = waits(policy)
    taken = [next(series) for _ in range(5)]
    for wait, full in zip(taken, [1, 2, 4, 4, 4], strict=True):
        assert full / 2 <= wait <= full
    assert len({wait / full for wait, full in zip(taken, [1, 2, 4, 4, 4], strict=True)}) > 1


def test_it_is_tried_until_it_works():
    result, slept = attempt([ConnectionResetError(), from_s3(503, "SlowDown"), 7])
    assert result == 7
    assert len(slept) == 2


def test_the_deadline_ends_it():
    with pytest.raises(
        StorageError,
        match=r"bytes 5 to 9 of s3://b/k: failed \d+ times in \d.*ConnectionResetError: again",
    ) as caught:
        attempt([ConnectionResetError("again")] * 50, deadline=3)
    assert isinstance(caught.value.__cause__, ConnectionResetError)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (FileNotFoundError("k"), FileNotFoundError, r"s3://b/k: there is no such object \(404"),
        (from_http(404), FileNotFoundError, r"s3://b/k: there is no such object \(404"),
        (PermissionError("no"), PermissionError, r"s3://b/k: access is refused \(403.*credentials"),
        (from_http(403), PermissionError, r"s3://b/k: access is refused \(403.*credentials"),
        (from_s3(400, "ExpiredToken"), PermissionError, r"access is refused \(400.*have expired"),
        (ZeroDivisionError("x"), ZeroDivisionError, "^x$"),
    ],
)
def test_other_failures_end_it_at_once(error, kind, text):
    if isinstance(error, OSError) and error.errno == errno.EINVAL:
        expired = PermissionError("token")
        expired.__cause__ = error.__cause__
        error = expired
    with pytest.raises(kind, match=text):
        attempt([error, 7])
