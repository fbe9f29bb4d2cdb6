"""The proxy itself: each fault is what it says, and the rest passes unharmed."""

import http.client
import re
import time
import urllib.error
import urllib.request

import fsspec
import pytest

from coredata.testing.fault_proxy import (
    Request,
    changed_object,
    delay,
    expired_credentials,
    flipped_byte,
    forbidden,
    ignored_range,
    missing,
    reset,
    short_body,
    shrunk_body,
    stall,
    status,
)

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def served(web):
    (web.root / "a.bin").write_bytes(CONTENT)
    return web


def fetch(web, first=0, last=255_999, name="a.bin", **headers):
    request = urllib.request.Request(
        f"{web.url}/{name}", headers={"Range": f"bytes={first}-{last}", **headers}
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read()


def test_without_faults_everything_passes(served):
    assert fetch(served) == CONTENT
    assert fetch(served, 10, 19) == CONTENT[10:20]
    seen = served.proxy.counters()
    assert seen.requests[1] == Request("GET", "/a.bin", "bytes=10-19")
    assert (seen.count("GET", ".bin"), seen.count("HEAD"), seen.body_bytes) == (2, 0, 256_010)
    served.proxy.clear()
    assert served.proxy.counters().requests == ()


def test_one_connection_serves_many_requests(served):
    connection = http.client.HTTPConnection("127.0.0.1", served.proxy.port)
    for first in range(5):
        connection.request("GET", "/a.bin", headers={"Range": f"bytes={first}-{first}"})
        assert connection.getresponse().read() == CONTENT[first : first + 1]
    connection.request("HEAD", "/a.bin")
    assert connection.getresponse().headers["Content-Length"] == "256000"
    connection.close()


@pytest.mark.parametrize("code", [500, 503, 429])
def test_statuses(served, code):
    served.proxy.set(status(code, times=2))
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError) as caught:
            fetch(served)
        assert caught.value.code == code
        caught.value.close()
    assert fetch(served) == CONTENT
    assert served.proxy.counters().faults == {"status": 2}


@pytest.mark.parametrize(
    ("fault", "code", "name"),
    [
        (forbidden(), 403, "AccessDenied"),
        (missing(), 404, "NoSuchKey"),
        (expired_credentials(), 400, "ExpiredToken"),
    ],
)
def test_refusals_carry_the_code_of_s3(served, fault, code, name):
    served.proxy.set(fault)
    with pytest.raises(urllib.error.HTTPError) as caught:
        fetch(served)
    assert caught.value.code == code
    assert f"<Code>{name}</Code>" in caught.value.read().decode()
    caught.value.close()


def test_what_a_fault_matches(served):
    (served.root / "b.idx").write_bytes(b"index")
    served.proxy.set(forbidden(r"^GET .*\.bin ", skip=1, times=1), missing(r"Credential=old/"))
    assert fetch(served, 0, 4, "b.idx") == b"index"
    assert fetch(served) == CONTENT
    with pytest.raises(urllib.error.HTTPError, match="403"):
        fetch(served)
    assert fetch(served) == CONTENT
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetch(served, Authorization="AWS4 Credential=old/2026")
    assert fetch(served, Authorization="AWS4 Credential=new/2026") == CONTENT


def test_delays_add_to_other_faults(served):
    served.proxy.set(delay(0.1), delay(0.1), status(503, times=1))
    for expected in (503, 200):
        begun = time.monotonic()
        if expected == 503:
            with pytest.raises(urllib.error.HTTPError, match="503"):
                fetch(served)
        else:
            assert fetch(served) == CONTENT
        assert 0.2 <= time.monotonic() - begun < 1
    assert served.proxy.counters().faults == {"delay": 4, "status": 1}


@pytest.mark.parametrize("at_byte", [None, 0, 1000])
def test_resets(served, at_byte):
    served.proxy.set(reset(at_byte=at_byte, times=1))
    with pytest.raises(ConnectionResetError):
        fetch(served)
    assert fetch(served) == CONTENT


def test_bodies_that_end_too_soon(served):
    served.proxy.set(short_body(1000, times=1), shrunk_body(1000, times=1))
    with pytest.raises(http.client.IncompleteRead) as caught:
        fetch(served)
    assert caught.value.partial == CONTENT[:1000]
    assert fetch(served) == CONTENT[:1000]
    assert fetch(served) == CONTENT


@pytest.mark.parametrize("at_byte", [None, 1000])
def test_stalls(served, at_byte):
    served.proxy.set(stall(0.3, at_byte=at_byte, times=1))
    begun = time.monotonic()
    with pytest.raises(ConnectionResetError):
        fetch(served)
    assert 0.3 <= time.monotonic() - begun < 2
    assert fetch(served) == CONTENT


def test_a_flipped_byte(served):
    served.proxy.set(flipped_byte(70_000, times=1))
    got = fetch(served)
    assert [i for i in range(len(CONTENT)) if got[i] != CONTENT[i]] == [70_000]
    assert fetch(served) == CONTENT


def test_an_object_that_seems_to_have_changed(served):
    def etag():
        with urllib.request.urlopen(f"{served.url}/a.bin", timeout=5) as answer:
            return answer.headers["ETag"]

    before = etag()
    served.proxy.set(changed_object())
    assert etag() == before[0] + "changed-" + before[1:]
    with pytest.raises(urllib.error.HTTPError, match="412"):
        fetch(served, **{"If-Match": before})


def test_a_range_that_is_ignored(served):
    served.proxy.set(ignored_range(times=1))
    assert fetch(served, 5, 9) == CONTENT
    assert fetch(served, 5, 9) == CONTENT[5:10]


def test_a_proxy_that_has_died_says_so(served):
    served.proxy.close()
    with pytest.raises(ValueError, match="closed"):
        served.proxy.counters()


def test_signed_requests_pass(bucket, proxy):
    bucket.put("x/a.bin", CONTENT)
    s3 = fsspec.filesystem("s3", **bucket.options)
    assert s3.cat_file(f"{bucket.name}/x/a.bin", start=5, end=10) == CONTENT[5:10]
    big = CONTENT * 45
    with s3.open(f"{bucket.name}/x/big", "wb", block_size=5 << 20) as file:
        file.write(big)
    assert bucket.get("x/big") == big
    assert bucket.names() == ["x/a.bin", "x/big"]
    seen = proxy.counters()
    assert seen.requests[0].range == "bytes=5-9"
    assert any(
        re.search("uploadId=.*partNumber=|partNumber=.*uploadId=", r.target) for r in seen.requests
    )


def test_s3_faults(bucket, proxy):
    bucket.put("a", CONTENT)
    s3 = fsspec.filesystem("s3", **bucket.options)
    proxy.set(forbidden(times=1), missing(times=1))
    with pytest.raises(PermissionError):
        s3.cat_file(f"{bucket.name}/a")
    with pytest.raises(FileNotFoundError):
        s3.cat_file(f"{bucket.name}/a")
    assert s3.cat_file(f"{bucket.name}/a") == CONTENT
