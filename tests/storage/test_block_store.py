"""Blocks on a local disk: kept, shared, bounded, and never used when they are damaged."""

import hashlib
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

from coredata.storage import RangedObject
from coredata.storage.block_store import BlockStore
from coredata.storage.options import ReadOptions

BLOCK = 1000
ABOUT = ("s3://b/x", 2500, '"etag"')
DATA = np.random.default_rng(7).integers(0, 256, 2500, np.uint8).tobytes()


@pytest.fixture
def store(tmp_path):
    return BlockStore(str(tmp_path / "blocks"), 1 << 30, BLOCK)


def blocks_of(store):
    return sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(store._directory)
        for name in names
        if name != "lock"
    )


def test_round_trip(store):
    assert store.read(ABOUT, 0, 2500) == []
    store.write(ABOUT, 0, DATA)
    whole = [(0, DATA[:1000]), (1000, DATA[1000:2000]), (2000, DATA[2000:])]
    assert store.read(ABOUT, 0, 2500) == whole
    assert store.read(ABOUT, 1000, 2000) == whole[1:2]
    again = BlockStore(store._directory, 1 << 30, BLOCK)
    assert again.read(ABOUT, 0, 2500) == whole


def test_only_some_blocks(store):
    store.write(ABOUT, 1000, DATA[1000:2000])
    assert store.read(ABOUT, 0, 2500) == [(1000, DATA[1000:2000])]


@pytest.mark.parametrize(
    "other", [("s3://b/y", 2500, '"etag"'), ("s3://b/x", 2400, '"etag"'), ("s3://b/x", 2500, "")]
)
def test_another_object_or_version_has_blocks_of_its_own(store, other):
    store.write(ABOUT, 0, DATA)
    assert store.read(other, 0, 2000) == []


def test_another_block_size_has_blocks_of_its_own(store):
    store.write(ABOUT, 0, DATA)
    assert BlockStore(store._directory, 1 << 30, 500).read(ABOUT, 0, 2500) == []


def damage(path, how):
    content = bytearray(Path(path).read_bytes())
    if how == "flipped":
        content[500] ^= 1
    elif how == "cut":
        del content[-1]
    elif how == "longer":
        content.append(0)
    elif how == "header":
        content[3] ^= 1
    elif how == "empty":
        content.clear()
    Path(path).write_bytes(bytes(content))


@pytest.mark.parametrize("how", ["flipped", "cut", "longer", "header", "empty"])
def test_damaged_blocks_are_not_used_and_go(store, how):
    store.write(ABOUT, 0, DATA[:1000])
    (path,) = blocks_of(store)
    damage(path, how)
    assert store.read(ABOUT, 0, 1000) == []
    assert blocks_of(store) == []


def test_a_block_under_another_name_is_not_used(store):
    store.write(ABOUT, 0, DATA[:2000])
    first, second = (store._path(ABOUT, number) for number in (0, 1))
    os.replace(first, second)
    assert store.read(ABOUT, 0, 2000) == []


def test_the_disk_is_bounded_and_what_was_used_last_stays(tmp_path):
    limit = 100 * (BLOCK + 20)
    store = BlockStore(str(tmp_path / "blocks"), limit, BLOCK)
    for number in range(300):
        store.write(("u", 10**9, str(number)), 0, bytes(BLOCK))
        store.read(("u", 10**9, "0"), 0, BLOCK)
        if number % 10 == 0:
            time.sleep(0.01)  # files differ in time
        total = sum(os.path.getsize(path) for path in blocks_of(store))
        assert total <= limit
    assert store.read(("u", 10**9, "0"), 0, BLOCK) != []
    assert store.read(("u", 10**9, "299"), 0, BLOCK) != []
    assert store.read(("u", 10**9, "1"), 0, BLOCK) == []
    assert len(blocks_of(store)) > 50


def test_a_store_that_is_there_already_is_counted(tmp_path):
    big = BlockStore(str(tmp_path / "blocks"), 1 << 30, BLOCK)
    for number in range(50):
        big.write(("u", 10**9, str(number)), 0, bytes(BLOCK))
    small = BlockStore(str(tmp_path / "blocks"), 20 * BLOCK, BLOCK)
    small.write(ABOUT, 0, DATA[:BLOCK])
    assert sum(os.path.getsize(path) for path in blocks_of(small)) <= 20 * BLOCK


def test_what_a_dead_process_left_goes_in_time(tmp_path):
    store = BlockStore(str(tmp_path / "blocks"), 1 << 30, BLOCK)
    os.makedirs(tmp_path / "blocks" / "00")
    old, new = (tmp_path / "blocks" / "00" / f"{name}.tmp" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (1, 1))
    store.write(ABOUT, 0, DATA)
    assert not old.exists()
    assert new.exists()


def test_a_full_disk_is_no_error(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    store.write(ABOUT, 0, DATA)
    assert store.failures == 1
    assert store.read(ABOUT, 0, 2500) == []
    assert blocks_of(store) == []


def test_a_directory_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"disk: .*blocks cannot be written; name"):
        BlockStore.of(ReadOptions(disk=str(tmp_path / "blocks")))


def reader_of(web, tmp_path, **options):
    own = {"disk": str(tmp_path / "blocks"), "block": 4096, "disk_bytes": uuid.uuid4().int}
    return RangedObject(f"{web.url}/x", {"coredata": {**own, **options}})


CONTENT = np.random.default_rng(8).integers(0, 256, 100_000, np.uint8).tobytes()


def ranges_of(web):
    return sorted(r.range for r in web.proxy.counters().requests if r.method == "GET")


def test_whole_blocks_are_fetched_once_whatever_becomes_of_the_memory(web, tmp_path):
    (web.root / "x").write_bytes(CONTENT)
    reader = reader_of(web, tmp_path, gap=0)
    assert bytes(reader.read(5000, 100)) == CONTENT[5000:5100]
    assert bytes(reader.read(99_000, 1000)) == CONTENT[99_000:]
    assert ranges_of(web) == ["bytes=4096-8191", "bytes=98304-99999"]
    web.proxy.clear()
    other = reader_of(web, tmp_path, gap=0)  # as after a restart: another cache in memory
    assert bytes(other.read(5000, 100)) == CONTENT[5000:5100]
    assert ranges_of(web) == []
    assert other.counters.bytes_from_disk == 4096
    assert bytes(other.read(4000, 9000)) == CONTENT[4000:13_000]
    assert ranges_of(web) == ["bytes=0-4095", "bytes=8192-16383"]


def test_blocks_on_disk_between_blocks_that_are_not(web, tmp_path):
    (web.root / "x").write_bytes(CONTENT)
    first = reader_of(web, tmp_path)
    first.read(4096, 10)
    first.read(5 * 4096, 10)
    other = reader_of(web, tmp_path)
    assert bytes(other.read(10, 40_000)) == CONTENT[10:40_010]
    assert other.counters.bytes_from_disk == 2 * 4096


def test_a_changed_object_does_not_use_blocks_of_the_old_one(web, tmp_path):
    (web.root / "x").write_bytes(CONTENT)
    reader_of(web, tmp_path).read(0, 50_000)
    (web.root / "x").write_bytes(CONTENT[::-1])
    assert bytes(reader_of(web, tmp_path).read(0, 50_000)) == CONTENT[::-1][:50_000]


def test_processes_share_blocks(web, tmp_path):
    (web.root / "x").write_bytes(CONTENT)
    reader_of(web, tmp_path).read(0, 100_000)
    web.proxy.clear()
    options = {"coredata": {"disk": str(tmp_path / "blocks"), "block": 4096}}
    code = (
        "from coredata.storage import RangedObject; import hashlib; "
        f"r = RangedObject({web.url + '/x'!r}, {options!r}); "
        "print(hashlib.sha256(r.read(0, 100_000)).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd()
    )
    assert done.stdout.strip() == hashlib.sha256(CONTENT).hexdigest()
    assert ranges_of(web) == []
