import gc
import os
import pickle
import resource

import fsspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coredata.storage import MappedFile, PositionalFile, RangedObject, WholeObject, open_reader

CONTENT = bytes(range(200))


@pytest.fixture(params=["mapped", "positional", "whole", "ranged"])
def reader(request, tmp_path):
    if request.param in ("whole", "ranged"):
        fsspec.filesystem("memory").pipe("/readers/x", CONTENT)
        kind = WholeObject if request.param == "whole" else RangedObject
        return kind("memory://readers/x")
    (tmp_path / "x").write_bytes(CONTENT)
    return open_reader(str(tmp_path / "x"), mmap=request.param == "mapped")


def test_which_reader_for_which_path(tmp_path):
    assert isinstance(open_reader("/data/x"), MappedFile)
    assert isinstance(open_reader("/data/x", mmap=False), PositionalFile)
    assert isinstance(open_reader("file:///data/x"), MappedFile)
    assert isinstance(open_reader("s3://bucket/x"), RangedObject)


def test_size_path_and_read(reader):
    assert reader.size == 200
    assert reader.path.endswith("x")
    assert bytes(reader.read(10, 5)) == CONTENT[10:15]
    assert bytes(reader.read(200, 0)) == b""
    reader.prefetch(np.array([0]), np.array([10]))


def test_views_are_read_only_and_survive_closing(reader):
    view = reader.view()
    if isinstance(reader, PositionalFile | RangedObject):
        assert view is None
        return
    assert not view.flags.writeable
    reader.close()
    gc.collect()
    assert view.tobytes() == CONTENT


def test_a_closed_reader_opens_again(reader):
    assert reader.size == 200
    reader.close()
    reader.close()
    assert bytes(reader.read(0, 3)) == CONTENT[:3]


@pytest.mark.parametrize(("offset", "length"), [(-1, 2), (199, 2), (201, 0), (0, -1), (2**62, 1)])
def test_ranges_outside_the_file(reader, offset, length):
    with pytest.raises(ValueError, match=r"bytes from byte .*x, which has 200 bytes"):
        reader.read(offset, length)
    with pytest.raises(ValueError, match=r"bytes from byte .*x, which has 200 bytes"):
        reader.read_ranges(
            np.array([offset]), np.array([length]), np.zeros(9, np.uint8), np.array([0])
        )


@pytest.mark.parametrize("start", [-1, 8, 2**62])
def test_ranges_outside_the_output(reader, start):
    with pytest.raises(ValueError, match=r"do not fit at byte .* of an output of 9 bytes"):
        reader.read_ranges(np.array([0]), np.array([2]), np.zeros(9, np.uint8), np.array([start]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=8))
def test_ranges_go_where_they_belong(reader, spans):
    offsets = np.array([a for a, _ in spans], np.int64)
    lengths = np.array([min(n, 200 - a) for a, n in spans], np.int64)
    starts = np.cumsum(lengths + 1) - lengths
    out = np.full(int((lengths + 1).sum()) + 1, 255, np.uint8)
    expected = out.copy()
    for a, n, o in zip(offsets, lengths, starts, strict=True):
        expected[o : o + n] = np.frombuffer(CONTENT, np.uint8)[a : a + n]
    reader.read_ranges(offsets, lengths, out, starts)
    np.testing.assert_array_equal(out, expected)


def test_pickled_to_a_path(reader):
    assert reader.size == 200
    copy = pickle.loads(pickle.dumps(reader))
    assert len(pickle.dumps(reader)) < 250
    assert bytes(copy.read(7, 2)) == CONTENT[7:9]


def test_opening_waits_for_the_first_use(tmp_path):
    for mmap in (True, False):
        later = open_reader(str(tmp_path / "later"), mmap=mmap)
        with pytest.raises(FileNotFoundError, match="later"):
            later.read(0, 1)
    with pytest.raises(FileNotFoundError):
        WholeObject("memory://readers/missing").view()
    with pytest.raises(FileNotFoundError, match="memory://readers/missing: there is no such"):
        open_reader("memory://readers/missing").read(0, 1)


@pytest.mark.parametrize("mmap", [True, False])
def test_empty_files(tmp_path, mmap):
    (tmp_path / "empty").write_bytes(b"")
    reader = open_reader(str(tmp_path / "empty"), mmap=mmap)
    assert reader.size == 0
    assert bytes(reader.read(0, 0)) == b""


def test_an_empty_object():
    fsspec.filesystem("memory").pipe("/readers/empty", b"")
    assert open_reader("memory://readers/empty").size == 0


def test_a_file_that_is_cut_while_it_is_read(tmp_path):
    (tmp_path / "x").write_bytes(CONTENT)
    reader = open_reader(str(tmp_path / "x"), mmap=False)
    assert reader.size == 200
    os.truncate(tmp_path / "x", 50)
    with pytest.raises(ValueError, match="ended at byte 50, but had 200 bytes when it was opened"):
        reader.read(40, 20)


def test_forked_children_share_an_open_reader(reader):
    assert reader.size == 200
    children = []
    for start in range(0, 200, 50):
        child = os.fork()
        if child == 0:
            right = all(bytes(reader.read(i, 1)) == CONTENT[i : i + 1] for i in range(start, 200))
            os._exit(0 if right else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0, 0]


def test_a_dropped_positional_reader_closes_its_descriptor(tmp_path):
    (tmp_path / "x").write_bytes(CONTENT)

    def opened():
        return sum(os.path.samefile(link, tmp_path / "x") for link in descriptors())

    def descriptors():
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return [link for link in links if os.path.exists(link)]

    readers = [open_reader(str(tmp_path / "x"), mmap=False) for _ in range(5)]
    assert [reader.size for reader in readers] == [200] * 5
    assert opened() == 5
    del readers
    gc.collect()
    assert opened() == 0


@pytest.mark.parametrize("mmap", [True, False])
def test_too_many_open_files_says_what_to_do(tmp_path, mmap):
    (tmp_path / "x").write_bytes(CONTENT)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 4, limits[1]))
    try:
        readers = [open_reader(str(tmp_path / "x"), mmap=mmap) for _ in range(highest + 8)]
        with pytest.raises(OSError, match=r"too many open files.*raise the limit \(ulimit -n"):
            print([reader.size for reader in readers])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_reads_that_come_in_pieces(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(CONTENT)
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, parts, at: whole(fd, [parts[0][:7]], at))
    reader = open_reader(str(tmp_path / "x"), mmap=False)
    assert bytes(reader.read(3, 100)) == CONTENT[3:103]
