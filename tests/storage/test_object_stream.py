"""Files behind URLs as streams: from a real S3 server and a plain HTTP one, with faults."""

import io
import itertools
import json
import re

import numpy as np
import pytest

from coredata.formats.json_lines import JsonLines
from coredata.storage import ObjectChangedError, StorageError, open_binary, read_bytes
from coredata.storage import object_stream as module
from coredata.storage.connection import Connection
from coredata.storage.faults import NoRangesError
from coredata.storage.object_stream import ObjectStream
from coredata.storage.options import read_options
from coredata.storage.service import read_service
from coredata.testing.fault_proxy import (
    changed_object,
    delay,
    forbidden,
    ignored_range,
    reset,
    short_body,
    shrunk_body,
    stall,
    status,
)

CONTENT = np.random.default_rng(8).integers(0, 256, 1_500_000, np.uint8).tobytes()
OPTIONS = {"deadline": 20.0, "timeout": 1.5}


class Served:
    """An object behind a proxy; `ranges` gives what was asked of it."""

    def __init__(self, url, options, proxy):
        self.url, self.proxy = url, proxy
        self.options = {**options, "coredata": OPTIONS}

    def ranges(self):
        return [
            tuple(map(int, re.findall(r"\d+", request.range)))
            for request in self.proxy.counters().requests
            if request.method == "GET"
        ]


@pytest.fixture(params=["s3", "web"])
def served(request):
    if request.param == "s3":
        bucket = request.getfixturevalue("bucket")
        url = bucket.put("x.jsonl", CONTENT)
        return Served(url, bucket.options, request.getfixturevalue("proxy"))
    web = request.getfixturevalue("web")
    (web.root / "x.jsonl").write_bytes(CONTENT)
    return Served(f"{web.url}/x.jsonl", {}, web.proxy)


PASSING = {
    "500": status(500, "^GET", skip=1, times=2),
    "503": status(503, "^GET", skip=1, times=2),
    "reset": reset("^GET", skip=1, times=2),
    "reset in the middle": reset("^GET", at_byte=50_000, skip=1, times=2),
    "body cut off": short_body(50_000, "^GET", skip=1, times=2),
    "body that is short and says so": shrunk_body(50_000, "^GET", skip=1, times=2),
    "silence in the middle": stall(30.0, "^GET", at_byte=50_000, skip=1, times=1),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("opener", [open_binary, ObjectStream], ids=["buffered", "raw"])
def test_what_passes_is_not_seen(served, fault, opener):
    served.proxy.set(fault)
    found = b""
    with opener(served.url, served.options) as stream:
        while data := stream.read(100_000):
            found += data
    assert found == CONTENT
    assert sum(served.proxy.counters().faults.values()) == fault.times


@pytest.mark.parametrize("fault", [PASSING["503"], PASSING["body cut off"]], ids=["503", "cut"])
def test_whole_files_are_read_under_the_same_rules(served, fault):
    served.proxy.set(fault)
    assert read_bytes(served.url, served.options) == CONTENT
    assert sum(served.proxy.counters().faults.values()) == fault.times


def test_what_does_not_pass_names_url_and_range(served):
    hasty = {**served.options, "coredata": {"deadline": 0.5, "timeout": 0.3}}
    with open_binary(served.url, hasty) as stream:
        assert stream.read(1) == CONTENT[:1]
        served.proxy.set(status(503, "^GET"))
        with pytest.raises(StorageError, match=r"bytes 1048576 … \d+ of .*/x\.jsonl: failed .*503"):
            stream.read()
        served.proxy.set()
        assert stream.read() == CONTENT[stream.tell() :] or stream.tell() == len(CONTENT)


def test_it_goes_on_after_an_error_where_it_was(served):
    hasty = {**served.options, "coredata": {"deadline": 0.5, "timeout": 0.3}}
    with ObjectStream(served.url, hasty) as stream:
        begin = stream.read(10)
        stream.seek(len(CONTENT) // 2)
        served.proxy.set(status(503, "^GET"))
        for _ in range(2):
            with pytest.raises(StorageError, match="503"):
                stream.read(10)
        served.proxy.set()
        rest = stream.read()
    assert (begin, rest) == (CONTENT[:10], CONTENT[len(CONTENT) // 2 :])


def test_an_object_that_changes_is_an_error(served):
    with open_binary(served.url, served.options) as stream:
        stream.read(10)
        served.proxy.set(changed_object("^GET"))
        with pytest.raises(ObjectChangedError, match="changed since it was opened"):
            stream.read()


def test_an_object_that_is_replaced_is_an_error(bucket):
    options = {**bucket.options, "coredata": OPTIONS}
    with open_binary(bucket.put("x", CONTENT), options) as stream:
        stream.read(10)
        bucket.put("x", CONTENT[::-1])
        with pytest.raises(ObjectChangedError, match="changed since it was opened"):
            stream.read()


def test_refusals_fail_at_once(served):
    with open_binary(served.url, served.options) as stream:
        stream.read(10)
        served.proxy.clear()
        served.proxy.set(forbidden("^GET"))
        with pytest.raises(PermissionError, match="access is forbidden"):
            stream.read()
    assert served.proxy.counters().faults["status"] <= 3  # those that were on their way


@pytest.mark.parametrize("seed", range(3))
def test_any_way_of_reading_gives_the_bytes_of_the_object(web, monkeypatch, seed):
    monkeypatch.setattr(module, "_FIRST_PIECE", 700)
    monkeypatch.setattr(module, "_LARGEST_PIECE", 5000)
    content = CONTENT[:60_000]
    (web.root / "x").write_bytes(content)
    rng = np.random.default_rng(seed)
    near = io.BytesIO(content)
    with ObjectStream(f"{web.url}/x", {"coredata": OPTIONS}, 30_000) as stream:
        for _ in range(150):
            if rng.random() < 0.1:
                place = int(rng.integers(0, 62_000))
                assert stream.seek(place) == near.seek(place)
            length = int(rng.integers(0, 4000))
            data = stream.read(length)
            assert data == near.read(len(data))
            assert data or length == 0 or near.tell() >= len(content)
            assert stream.tell() == near.tell()
        assert stream.seek(-5, io.SEEK_END) == 59_995
        assert stream.seek(2, io.SEEK_CUR) == 59_997
        assert stream.read() == content[-3:]
        with pytest.raises(ValueError, match="negative position -1"):
            stream.seek(-1)


def test_pieces_grow_and_come_ahead_of_use(web, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PIECE", 1000)
    monkeypatch.setattr(module, "_LARGEST_PIECE", 4000)
    (web.root / "x").write_bytes(CONTENT[:40_000])
    served = Served(f"{web.url}/x", {}, web.proxy)
    with ObjectStream(served.url, served.options) as stream:
        stream.read(10)
        assert served.ranges() == [(0, 999)]  # whoever looks at the beginning fetches no more
        served.proxy.set(delay(0.2))
        while stream.tell() < 8000:
            stream.read(500)
    assert sorted(served.ranges())[:4] == [(0, 999), (1000, 2999), (3000, 6999), (7000, 10999)]
    assert served.proxy.counters().most_at_once == 3


def test_nothing_behind_the_stop_is_fetched_ahead(web, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PIECE", 1000)
    (web.root / "x").write_bytes(CONTENT[:40_000])
    served = Served(f"{web.url}/x", {}, web.proxy)
    with ObjectStream(served.url, served.options, 5500) as stream:
        while stream.tell() < 5600:
            stream.read(min(500, 5600 - stream.tell()))
        assert stream.tell() == 5600
    assert sorted(served.ranges()) == [(0, 999), (1000, 2999), (3000, 5499), (5500, 6499)]
    with ObjectStream(served.url, served.options, 10_500) as stream:
        stream.seek(10_000)
        assert len(stream.read(800)) == 500
    assert served.ranges()[-1] == (10_000, 10_499)


def test_stretches_of_json_lines_fetch_little_more_than_themselves(web):
    lines = [json.dumps({"text": "x" * 200, "number": number}) for number in range(20_000)]
    content = "\n".join(lines).encode() + b"\n"
    (web.root / "x.jsonl").write_bytes(content)
    options = {"coredata": {**OPTIONS, "disk_bytes": 77}}
    found, cuts = [], [*range(0, len(content), 1 << 20), len(content)]
    for start, end in itertools.pairwise(cuts):
        found += list(JsonLines(f"{web.url}/x.jsonl", start, end, storage_options=options))
    assert found == [json.loads(line) for line in lines]
    fetched = read_service(read_options(options)).counters.bytes_fetched
    assert fetched < len(content) + (len(cuts) + 1) * (256 << 10)


def test_memory_does_not_grow_with_the_file(bucket):
    url = bucket.put("x", bytes(48 << 20))
    options = {**bucket.options, "coredata": {"deadline": 120.0, "disk_bytes": 78}}
    with open_binary(url, options) as stream:
        while stream.read(1 << 20):
            assert read_service(read_options(options)).counters.held == 0
            ahead = stream.raw._coming
            assert len(ahead) <= 3
            assert all(
                future.done() is False or len(future.result()) <= 4 << 20 for _, future in ahead
            )


def test_a_server_without_ranges_is_read_in_one_go(web):
    (web.root / "x").write_bytes(CONTENT)
    web.proxy.set(ignored_range())
    with open_binary(f"{web.url}/x", {"coredata": OPTIONS}) as stream:
        assert stream.read(100) == CONTENT[:100]
        stream.seek(1_200_000)
        assert stream.read(100) == CONTENT[1_200_000:1_200_100]
        stream.seek(50)
        assert stream.read() == CONTENT[50:]
    assert web.proxy.counters().count("GET") == 3


def test_an_object_whose_size_is_not_known_is_read_in_one_go(web, monkeypatch):
    (web.root / "x").write_bytes(CONTENT)
    monkeypatch.setattr(Connection, "facts", _size_unknown)
    with open_binary(f"{web.url}/x") as stream:
        assert stream.read() == CONTENT


def _size_unknown(self, url):
    raise NoRangesError("its size is not known")


def test_file_systems_laid_over_another_are_left_to_fsspec(web, tmp_path):
    (web.root / "x.txt").write_bytes(CONTENT)
    url = f"simplecache::{web.url}/x.txt"
    with open_binary(url, {"simplecache": {"cache_storage": str(tmp_path / "cache")}}) as stream:
        assert not isinstance(stream.raw, ObjectStream)
        assert stream.read() == CONTENT


def test_closed_streams_say_so(served):
    stream = open_binary(served.url, served.options)
    stream.read(1)
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        stream.read(1)
