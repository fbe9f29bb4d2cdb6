"""Ranges of a real S3 server and of a plain HTTP one, behind a proxy that makes things go wrong."""

import threading
import time
import uuid

import numpy as np
import pytest

from coredata.storage import RangedObject, StorageError
from coredata.storage.faults import ObjectChangedError
from coredata.testing.fault_proxy import (
    changed_object,
    delay,
    expired_credentials,
    forbidden,
    missing,
    reset,
    short_body,
    shrunk_body,
    stall,
    status,
)

CONTENT = np.random.default_rng(6).integers(0, 256, 200_000, np.uint8).tobytes()
FIRST = ([1000, 60_000, 150_000], [5000, 70, 20_000])


def fresh():
    """A number that no other test has, so that the options share a cache with none."""
    return uuid.uuid4().int


class Served:
    """An object behind a proxy."""

    def __init__(self, url, options, proxy, write):
        self.url, self.options, self.proxy, self.write = url, options, proxy, write

    def reader(self, **options):
        own = {"deadline": 20.0, "timeout": 5.0, "disk_bytes": fresh(), **options}
        return RangedObject(self.url, {**self.options, "coredata": own})


@pytest.fixture(params=["s3", "web"])
def served(request):
    if request.param == "s3":
        bucket = request.getfixturevalue("bucket")
        url = bucket.put("x.bin", CONTENT)
        options = {**bucket.options, "use_listings_cache": False}
        write = lambda content: bucket.put("x.bin", content)  # noqa: E731
        return Served(url, options, request.getfixturevalue("proxy"), write)
    web = request.getfixturevalue("web")
    (web.root / "x.bin").write_bytes(CONTENT)
    return Served(f"{web.url}/x.bin", {}, web.proxy, (web.root / "x.bin").write_bytes)


def gather(reader, offsets, lengths):
    offsets, lengths = np.array(offsets, np.int64), np.array(lengths, np.int64)
    out = np.zeros(int(lengths.sum()), np.uint8)
    reader.read_ranges(offsets, lengths, out, np.cumsum(lengths) - lengths)
    return out.tobytes()


def expected(offsets, lengths):
    return b"".join(CONTENT[a : a + n] for a, n in zip(offsets, lengths, strict=True))


PASSING = {
    "500": status(500, "^GET", times=2),
    "503": status(503, "^GET", times=2),
    "429": status(429, "^GET", times=2),
    "reset before the answer": reset("^GET", times=2),
    "reset in the body": reset("^GET", at_byte=50, times=2),
    "body cut off": short_body(50, "^GET", times=2),
    "body that is short and says so": shrunk_body(50, "^GET", times=2),
    "silence": stall(30.0, "^GET", times=1),
    "silence in the body": stall(30.0, "^GET", at_byte=50, times=1),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("ahead", [False, True], ids=["read", "ahead"])
def test_what_passes_is_not_seen(served, fault, ahead):
    reader = served.reader(timeout=1.5)
    assert reader.size == len(CONTENT)
    served.proxy.set(fault)
    if ahead:
        reader.prefetch(np.array(FIRST[0]), np.array(FIRST[1]))
    assert gather(reader, *FIRST) == expected(*FIRST)
    assert sum(served.proxy.counters().faults.values()) == fault.times
    retries = reader.counters.retries  # HTTP clients open a connection that was reset once again
    assert retries == fault.times or (fault.kind == "reset" and retries < fault.times)
    assert reader.counters.bytes_fetched == sum(FIRST[1])


@pytest.mark.parametrize("fault", [status(503, times=2), reset(times=2)], ids=["503", "reset"])
def test_opening_is_tried_again_too(served, fault):
    served.proxy.set(fault)
    assert served.reader().size == len(CONTENT)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (status(500, "^GET"), "500"),
        (status(503, "^GET"), "503"),
        (reset("^GET"), ""),
        (short_body(50, "^GET"), ""),
        (shrunk_body(50, "^GET"), "50 bytes came instead of 5000"),
        (stall(30.0, "^GET"), "TimeoutError"),
    ],
    ids=["500", "503", "reset", "short", "shrunk", "stall"],
)
def test_what_does_not_pass_ends_at_the_deadline_and_names_url_and_range(served, fault, reason):
    reader = served.reader(deadline=0.8, timeout=0.3)
    assert reader.size
    served.proxy.set(fault)
    begun = time.monotonic()
    text = rf"bytes 1000 … 5999 of .*/x\.bin: failed \d times in .* s, .*{reason}"
    with pytest.raises(StorageError, match=text):
        reader.read(1000, 5000)
    assert time.monotonic() - begun < 3.0
    served.proxy.set()
    assert bytes(reader.read(1000, 5000)) == CONTENT[1000:6000]


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (forbidden("^GET"), PermissionError, "access is forbidden: .*403"),
        (missing("^GET"), FileNotFoundError, "there is no such object"),
    ],
    ids=["403", "404"],
)
def test_403_and_404_fail_at_once_and_say_which(served, fault, kind, text):
    reader = served.reader()
    assert reader.size
    served.proxy.set(fault)
    with pytest.raises(kind, match=rf"bytes 10 … 19 of .*/x\.bin: {text}"):
        reader.read(10, 10)
    assert sum(served.proxy.counters().faults.values()) == 1
    assert reader.counters.retries == 0


def test_403_and_404_when_opening(served):
    served.proxy.set(missing())
    with pytest.raises(FileNotFoundError, match=r"/x\.bin: there is no such object"):
        print(served.reader().size)
    served.proxy.set(forbidden())
    with pytest.raises(PermissionError, match=r"/x\.bin: access is forbidden"):
        print(served.reader().size)


def test_an_object_that_changes_is_an_error(served):
    reader = served.reader()
    assert bytes(reader.read(0, 10)) == CONTENT[:10]
    served.write(CONTENT[::-1])
    text = r"bytes 5000 … 5009 of .*/x\.bin: the object has changed since it was opened.*412"
    if served.url.startswith("http"):  # this server does not know If-Match; the proxy does
        served.proxy.set(changed_object())
    with pytest.raises(ObjectChangedError, match=text):
        reader.read(5000, 10)
    served.proxy.set()
    reader.close()
    assert bytes(reader.read(5000, 10)) == CONTENT[::-1][5000:5010]


def test_what_was_read_of_an_old_object_is_not_mixed_with_the_new_one(served):
    reader = served.reader()
    reader.read(0, 100_000)
    served.write(CONTENT[::-1])
    again = RangedObject(reader.path, reader._storage_options)
    assert bytes(again.read(0, 100_000)) == CONTENT[::-1][:100_000]


def test_an_object_that_shrinks_where_it_cannot_be_demanded(web):
    (web.root / "x.bin").write_bytes(CONTENT)
    options = {"headers": {}, "coredata": {"recheck": 0, "disk_bytes": fresh()}}
    reader = RangedObject(f"{web.url}/x.bin", options)
    assert reader.size == len(CONTENT)
    facts = reader._object.facts
    object.__setattr__(facts, "demand", "")
    (web.root / "x.bin").write_bytes(CONTENT[:50_000])
    text = r"has changed since it was opened.*it had 200000 bytes .* and has 50000"
    with pytest.raises(ObjectChangedError, match=text):
        reader.read(100_000, 10)


def test_credentials_that_are_renewed_in_time(bucket, proxy, monkeypatch, tmp_path):
    url = bucket.put("x.bin", CONTENT)
    named = tmp_path / "credentials"

    def write(key):
        named.write_text(
            f"[run]\naws_access_key_id = {key}\n"
            f"aws_secret_access_key = {bucket.options['secret']}\n"
        )

    write(bucket.options["key"])
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(named))
    options = {k: v for k, v in bucket.options.items() if k not in ("key", "secret")}
    own = {"deadline": 20.0, "disk_bytes": fresh()}
    reader = RangedObject(url, {**options, "profile": "run", "coredata": own})
    assert bytes(reader.read(0, 10)) == CONTENT[:10]
    write("expiredkey")
    reader._service()._requests._connection(url, reader._storage_options).renew()
    proxy.set(expired_credentials("Credential=expiredkey/", times=2, skip=0))

    threading.Timer(0.25, write, [bucket.options["key"]]).start()
    assert bytes(reader.read(5000, 10)) == CONTENT[5000:5010]
    assert reader.counters.retries >= 1


def test_credentials_that_have_expired(bucket, proxy):
    url = bucket.put("x.bin", CONTENT)
    own = {"deadline": 0.6, "disk_bytes": fresh()}
    reader = RangedObject(url, {**bucket.options, "coredata": own})
    assert reader.size
    proxy.set(expired_credentials("^GET"))
    text = r"bytes 0 … 9 of s3://.*/x\.bin: the credentials have expired, and were not renewed"
    with pytest.raises(PermissionError, match=text):
        reader.read(0, 10)


def test_order_does_not_depend_on_which_request_is_first(served):
    reader = served.reader(gap=0)
    assert reader.size
    served.proxy.set(delay(0.4, "bytes=1000-"), delay(0.1, "bytes=60000-"))
    offsets, lengths = [60_000, 1000, 1500, 190_000], [100, 100, 100, 100]
    reader.prefetch(np.array(offsets[::-1]), np.array(lengths))
    assert gather(reader, offsets, lengths) == expected(offsets, lengths)


def test_errors_of_hints_come_out_of_the_read(served):
    reader = served.reader(deadline=0.3)
    assert reader.size
    served.proxy.set(forbidden("^GET"))
    reader.prefetch(np.array([0]), np.array([10]))
    with pytest.raises(PermissionError, match=r"bytes 0 … 9 of"):
        reader.read(0, 10)
    served.proxy.set()
    assert bytes(reader.read(0, 10)) == CONTENT[:10]
