"""Trying again: what is, for how long, and what is said in the end. No request is made."""

import errno

import aiohttp
import pytest
from botocore.exceptions import ClientError, HTTPClientError, NoCredentialsError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from coredata.storage import ShortBodyError, StorageError
from coredata.storage.faults import ObjectChangedError, understand
from coredata.storage.retry import Retry

WHAT = "bytes 0 … 99 of s3://b/k"


def boto(code, status=400):
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetObject")


def caused(error, cause):
    error.__cause__ = cause
    return error


def web(status):
    about = aiohttp.RequestInfo(URL("http://h/x"), "GET", CIMultiDictProxy(CIMultiDict()))
    return aiohttp.ClientResponseError(about, (), status=status, message="x")


ERRORS = [
    (TimeoutError(), "again"),
    (ConnectionResetError(), "again"),
    (ShortBodyError("3 bytes"), "again"),
    (OSError(errno.EBUSY, "slow down"), "again"),
    (HTTPClientError(error="x"), "again"),
    (aiohttp.ServerDisconnectedError(), "again"),
    (aiohttp.ClientPayloadError(), "again"),
    (boto("InternalError", 500), "again"),
    (boto("SlowDown", 503), "again"),
    (web(429), "again"),
    (web(502), "again"),
    (caused(OSError(121, "x"), boto("InternalError", 500)), "again"),
    (boto("ExpiredToken"), "expired"),
    (caused(PermissionError("x"), boto("ExpiredToken")), "expired"),
    (boto("AccessDenied", 403), "forbidden"),
    (PermissionError(), "forbidden"),
    (web(403), "forbidden"),
    (web(404), "missing"),
    (FileNotFoundError(), "missing"),
    (boto("PreconditionFailed", 412), "changed"),
    (boto("InvalidRange", 416), "changed"),
    (ObjectChangedError(), "changed"),
    (web(401), "doubtful"),
    (boto("400", 400), "doubtful"),
    (boto("InvalidRequest", 400), "refused"),
    (OSError(errno.ENOSPC, "full"), "refused"),
    (NoCredentialsError(), "refused"),
    (IsADirectoryError(), "refused"),
]


@pytest.mark.parametrize(
    ("error", "meaning"), ERRORS, ids=[f"{i}-{m}" for i, (_, m) in enumerate(ERRORS)]
)
def test_what_errors_mean(error, meaning):
    assert understand(error).meaning == meaning


class Storage:
    """Fails as told, then gives 7; time passes only while it is waited."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.now = 0.0
        self.pauses, self.renewed, self.retried, self.tries = [], 0, 0, 0

    def attempt(self):
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return 7

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds

    def renew(self):
        self.renewed += 1

    def again(self):
        self.retried += 1

    def run(self, deadline=100.0, jitter=1.0):
        rules = Retry(deadline, lambda: self.now, self.sleep, lambda: jitter)
        return rules.run(WHAT, self.attempt, self.renew, self.again)


def test_what_passes_is_tried_again_with_growing_pauses():
    storage = Storage(*[TimeoutError()] * 9)
    assert storage.run() == 7
    assert storage.pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert storage.retried == 9


def test_jitter_halves_a_pause_at_most():
    storage = Storage(*[TimeoutError()] * 3)
    storage.run(jitter=0.0)
    assert storage.pauses == [0.05, 0.1, 0.2]


def test_jitter_is_not_the_same_everywhere():
    assert Retry(1.0).jitter() != Retry(1.0).jitter()


def test_no_pause_goes_beyond_the_deadline():
    storage = Storage(*[ConnectionResetError("gone")] * 99)
    text = r"bytes 0 … 99 of s3://b/k: failed 5 times in 1\.5 s, .*ConnectionResetError: gone.*600"
    with pytest.raises(StorageError, match=text):
        storage.run(deadline=3.0)
    assert storage.now <= 3.0
    assert storage.tries == 5


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (web(404), FileNotFoundError, "there is no such object: 404"),
        (boto("AccessDenied", 403), PermissionError, "access is forbidden: 403 AccessDenied"),
        (boto("PreconditionFailed", 412), ObjectChangedError, "has changed since it was opened"),
        (boto("InvalidRequest"), StorageError, "the request was refused: 400 InvalidRequest"),
    ],
)
def test_what_does_not_pass_fails_at_once(error, kind, text):
    storage = Storage(error)
    with pytest.raises(kind, match=f"bytes 0 … 99 of s3://b/k: .*{text}"):
        storage.run()
    assert (storage.tries, storage.pauses) == (1, [])


def test_expired_credentials_are_read_again():
    storage = Storage(boto("ExpiredToken"), boto("ExpiredToken"))
    assert storage.run() == 7
    assert storage.renewed == 2


def test_credentials_that_are_not_renewed():
    storage = Storage(*[boto("ExpiredToken")] * 99)
    with pytest.raises(PermissionError, match=r"have expired, and were not renewed within .* s"):
        storage.run(deadline=1.0)


def test_a_doubtful_answer_is_given_one_more_try_with_new_credentials():
    storage = Storage(web(401))
    assert storage.run() == 7
    assert storage.renewed == 1
    storage = Storage(web(401), web(401))
    with pytest.raises(StorageError, match="the request was refused: 401"):
        storage.run()


def test_what_storage_cannot_cause_is_not_caught():
    with pytest.raises(ZeroDivisionError):
        Storage(ZeroDivisionError()).run()
