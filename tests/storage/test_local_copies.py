"""Objects copied to a local disk: once, whole, and again when they change or are damaged."""

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc

import fsspec
import numpy as np
import pytest

from coredata.storage import StorageError
from coredata.storage.copied_object import CopiedObject, open_copied
from coredata.storage.faults import ObjectChangedError
from coredata.storage.local_copies import LocalCopies, local_copies
from coredata.testing.fault_proxy import (
    changed_object,
    delay,
    forbidden,
    missing,
    reset,
    short_body,
    shrunk_body,
    stall,
    status,
)

CONTENT = np.random.default_rng(0).integers(0, 256, 300_000, np.uint8).tobytes()
OPTIONS = {"coredata": {"deadline": 20.0, "timeout": 0.5}}


@pytest.fixture
def url(web):
    (web.root / "a.idx").write_bytes(CONTENT)
    return f"{web.url}/a.idx"


@pytest.fixture
def copies(tmp_path):
    return LocalCopies(str(tmp_path / "copies"))


def files(copies, *suffixes):
    return sorted(name for name in os.listdir(copies.directory) if name.endswith(suffixes))


def data_file(copies):
    (name,) = [n for n in os.listdir(copies.directory) if "-" in n and not n.endswith(".json")]
    return os.path.join(copies.directory, name)


def test_copied_once_then_mapped(url, web, copies):
    for _ in range(3):
        data = copies.open(url)
        assert data.tobytes() == CONTENT
        assert not data.flags.writeable
    seen = web.proxy.counters()
    assert (seen.count("GET"), seen.count("HEAD")) == (1, 3)
    assert len(files(copies, ".tmp")) == 0


def test_nothing_is_made_before_it_is_needed(copies):
    assert not os.path.exists(copies.directory)


def test_empty_objects(web, copies):
    (web.root / "empty").write_bytes(b"")
    for _ in range(2):
        assert copies.open(f"{web.url}/empty").size == 0


def test_a_changed_object_is_copied_again_and_the_old_copy_goes(url, web, copies):
    before = copies.open(url)
    (web.root / "a.idx").write_bytes(CONTENT[::-1])
    assert copies.open(url).tobytes() == CONTENT[::-1]
    assert before.tobytes() == CONTENT
    assert len(os.listdir(copies.directory)) == 3  # the copy, its record, the lock
    assert copies.open(url).tobytes() == CONTENT[::-1]
    assert web.proxy.counters().count("GET") == 2


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_object_that_changes_during_the_copy(url, web, copies, method):
    web.proxy.set(changed_object(f"^{method} ", times=1))
    assert copies.open(url).tobytes() == CONTENT
    assert web.proxy.counters().faults["changed"] == 1
    assert len(os.listdir(copies.directory)) == 3


def test_an_object_that_never_holds_still(url, web, copies):
    web.proxy.set(changed_object("^GET "))
    with pytest.raises(
        ObjectChangedError, match=r"a\.idx was replaced 5 times while it was copied"
    ):
        copies.open(url)
    assert files(copies, ".tmp", ".json") == []


def damage(path, what):
    if what == "cut":
        os.truncate(path, 1000)
    elif what == "removed":
        os.unlink(path)
    else:
        with open(path, "r+b") as file:
            file.seek(77_777)
            byte = file.read(1)[0]
            file.seek(77_777)
            file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("what", ["cut", "removed", "flipped"])
def test_a_damaged_copy_heals(url, web, copies, what):
    copies.open(url)
    damage(data_file(copies), what)
    assert copies.open(url).tobytes() == CONTENT
    assert copies.open(url).tobytes() == CONTENT
    assert web.proxy.counters().count("GET") == 2


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"url": "x"}', b"\xff"])
def test_a_damaged_record_heals(url, web, copies, content):
    copies.open(url)
    with open(data_file(copies) + ".json", "wb") as file:
        file.write(content)
    assert copies.open(url).tobytes() == CONTENT
    assert web.proxy.counters().count("GET") == 2


def test_a_copy_is_checked_again_after_the_machine_has_started(url, web, copies, monkeypatch):
    copies.open(url)
    path = data_file(copies)
    before = os.stat(path)
    damage(path, "flipped")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    monkeypatch.setattr("coredata.storage.local_copies._boot", lambda: "another")
    assert copies.open(url).tobytes() == CONTENT
    assert web.proxy.counters().count("GET") == 2


def test_a_touched_copy_is_checked_and_kept(url, web, copies):
    copies.open(url)
    os.utime(data_file(copies))
    for _ in range(2):
        assert copies.open(url).tobytes() == CONTENT
    assert web.proxy.counters().count("GET") == 1
    with open(data_file(copies) + ".json") as file:
        assert json.load(file)["url"] == url


def test_two_urls_are_two_copies(url, web, copies):
    (web.root / "b.idx").write_bytes(CONTENT[:10])
    assert copies.open(f"{web.url}/b.idx").tobytes() == CONTENT[:10]
    assert copies.open(url).tobytes() == CONTENT
    assert len(files(copies, ".json")) == 2


def test_large_objects_come_in_pieces(url, web, copies, monkeypatch):
    monkeypatch.setattr("coredata.storage.local_copies.PIECE", 10_000)
    web.proxy.set(delay(0.02), short_body(100, r"bytes=10000-", times=1), status(503, times=1))
    assert copies.open(url, OPTIONS).tobytes() == CONTENT
    seen = web.proxy.counters()
    ranges = sorted({int(r.range[6:].split("-")[0]) for r in seen.requests if r.range})
    assert ranges == list(range(0, 300_000, 10_000))
    assert 2 <= seen.most_at_once <= 5


@pytest.mark.parametrize(
    "fault",
    [
        status(500, times=2),
        status(503, times=2),
        status(429, times=2),
        reset(times=2),
        reset(r"^GET", at_byte=1000, times=2),
        short_body(1000, r"^GET", times=2),
        shrunk_body(1000, r"^GET", times=2),
        stall(1, times=2),
        stall(1, r"^GET", at_byte=1000, times=2),
    ],
    ids=lambda fault: f"{fault.kind}{fault.status or ''}-{fault.at_byte or 0}",
)
def test_faults_that_pass(url, web, copies, fault):
    web.proxy.set(fault)
    assert copies.open(url, OPTIONS).tobytes() == CONTENT
    assert sum(web.proxy.counters().faults.values()) == 2
    assert files(copies, ".tmp") == []


def test_a_fault_that_does_not_pass_ends_at_the_deadline(url, web, copies):
    web.proxy.set(status(503, r"^GET"))
    options = {"coredata": {"deadline": 1.0}}
    begun = time.monotonic()
    with pytest.raises(StorageError, match=r"bytes 0 … 299999 of http.*a\.idx: failed \d+ times"):
        copies.open(url, options)
    assert time.monotonic() - begun < 3
    assert files(copies, ".tmp", ".json") == []


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (forbidden(), PermissionError, r"a\.idx: access is forbidden: 403"),
        (missing(), FileNotFoundError, r"a\.idx: there is no such object:"),
    ],
)
@pytest.mark.parametrize("skip", [0, 1])
def test_refusals_fail_at_once(url, web, copies, fault, kind, text, skip):
    web.proxy.set(dataclasses.replace(fault, skip=skip))
    with pytest.raises(kind, match=text):
        copies.open(url)
    # fsspec asks a web server that refuses HEAD once more, by GET
    assert sum(web.proxy.counters().faults.values()) <= 2


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_full_disk(url, copies, monkeypatch, call):
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full_disk)
        with pytest.raises(
            OSError,
            match=r"cannot keep a copy of http.*a\.idx \(300000 bytes\) in .*copies: No space left "
            r"on device; make room there, or name another directory \(the environment variable "
            r"COREDATA_CACHE",
        ) as caught:
            copies.open(url)
    assert caught.value.errno == errno.ENOSPC
    assert [name for name in os.listdir(copies.directory) if not name.endswith(".lock")] == []
    assert copies.open(url).tobytes() == CONTENT


def test_a_directory_that_cannot_be_made(url, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match=r"cannot keep a copy of .*file/copies: Not a directory"):
        LocalCopies(str(tmp_path / "file" / "copies")).open(url)


def test_without_locks_every_process_downloads_for_itself(url, copies, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.lockf", no_locks)
    assert copies.open(url).tobytes() == CONTENT
    assert copies.open(url).tobytes() == CONTENT


def test_where_copies_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("COREDATA_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert local_copies(None).directory == "/home/someone/.cache/coredata"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert local_copies({}).directory == "/caches/coredata"
    monkeypatch.setenv("COREDATA_CACHE", "/scratch")
    assert local_copies({"anon": True}).directory == "/scratch"
    assert local_copies({"coredata": {"copies": "/mine"}}).directory == "/mine"


def test_memory_is_bounded(bucket, copies):
    size = 100 << 20
    url = bucket.put("large.idx", bytes(size))
    options = {**bucket.options, "coredata": {"timeout": 60.0}}
    copies.open(bucket.put("small.idx", b"x"), options)
    tracemalloc.start()
    data = copies.open(url, options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert data.size == size
    assert peak < 90 << 20


OPEN = """
import sys, time
from coredata.storage.local_copies import LocalCopies
url, directory, size = sys.argv[1:]
data = LocalCopies(directory).open(url)
print(data.size == int(size) and int(data.sum()))
"""


def start(url, copies, size):
    command = [sys.executable, "-c", OPEN, url, copies.directory, str(size)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_eight_processes_download_once(web, copies):
    content = np.full(2_000_000, 3, np.uint8)
    (web.root / "a").write_bytes(content.tobytes())
    web.proxy.set(delay(0.5, r"^GET"))
    running = [start(f"{web.url}/a", copies, content.size) for _ in range(8)]
    assert [process.communicate(timeout=60)[0] for process in running] == ["6000000\n"] * 8
    assert web.proxy.counters().count("GET") == 1


@pytest.mark.slow
def test_another_process_takes_over_from_one_that_is_killed(web, copies):
    content = np.full(2_000_000, 3, np.uint8)
    (web.root / "a").write_bytes(content.tobytes())
    web.proxy.set(stall(600, r"^GET", at_byte=1_000_000, times=1))
    first = start(f"{web.url}/a", copies, content.size)
    deadline = time.monotonic() + 30
    while web.proxy.counters().count("GET") == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    others = [start(f"{web.url}/a", copies, content.size) for _ in range(3)]
    while web.proxy.counters().count("HEAD") < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    assert web.proxy.counters().count("GET") == 1
    first.send_signal(signal.SIGKILL)
    assert [process.communicate(timeout=60)[0] for process in others] == ["6000000\n"] * 3
    assert first.wait() == -signal.SIGKILL
    first.stdout.close()
    assert web.proxy.counters().count("GET") == 2
    assert files(copies, ".tmp") == []


def test_what_a_killed_process_left_is_swept(url, copies):
    copies.open(url)
    left = data_file(copies).rsplit("-", 1)[0] + ".999999999.abcdef.tmp"
    open(left, "wb").close()
    os.unlink(data_file(copies))
    copies.open(url)
    assert files(copies, ".tmp") == []


def test_copies_from_s3(bucket, proxy, copies):
    url = bucket.put("a.idx", CONTENT)
    options = {**bucket.options, "coredata": {"copies": copies.directory}}
    reader = open_copied(url, options)
    assert isinstance(reader, CopiedObject)
    assert reader.view().tobytes() == CONTENT
    reader.close()
    assert bytes(reader.read(5, 3)) == CONTENT[5:8]
    assert proxy.counters().count("GET") == 1


def test_what_is_in_memory_is_not_copied_to_disk(tmp_path):
    fsspec.filesystem("memory").pipe("/copies/a", b"abc")
    options = {"coredata": {"copies": str(tmp_path / "copies")}}
    reader = open_copied("memory://copies/a", options)
    assert bytes(reader.read(1, 2)) == b"bc"
    assert not (tmp_path / "copies").exists()


def test_without_a_version_a_copy_could_be_stale(web_without_versions, copies):
    (web_without_versions.root / "a.idx").write_bytes(CONTENT)
    url = f"{web_without_versions.url}/a.idx"
    with pytest.raises(ValueError, match=r"a\.idx: storage tells neither an ETag nor a time of"):
        copies.open(url)


def test_local_files_are_mapped_where_they_are(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert bytes(open_copied(str(tmp_path / "a")).read(1, 2)) == b"bc"
