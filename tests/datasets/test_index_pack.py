"""Small arrays that stand beside their checksums: when the copy counts, and when it does not."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.datasets import index_cache
from coredata.datasets.index_cache import IndexCache, IndexCacheWarning
from coredata.datasets.index_pack import packed, unpacked
from coredata.datasets.npy import DamagedFileError

ARRAYS = {
    "first": np.arange(5, dtype=np.uint32),
    "second": np.arange(6, dtype=np.int64).reshape(3, 2),
    "third": np.empty((0, 2), np.int32),
}
NAMES = list(ARRAYS)


@pytest.fixture
def cache(tmp_path):
    cache = IndexCache(str(tmp_path), "{}", "Some", "train")
    cache.store(ARRAYS)
    return cache


@pytest.fixture
def opened(monkeypatch):
    """Names of the array files that are opened."""
    names = []

    def noted(path, storage_options):
        names.append(path.rsplit("-", 1)[1])
        return open_npy(path, storage_options)

    open_npy = index_cache.open_npy
    monkeypatch.setattr(index_cache, "open_npy", noted)
    return names


def assert_loads(cache, arrays=ARRAYS):
    found = cache.load(list(arrays))
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert array.size == 0 or not found[name].flags.writeable


def change_pack(cache, change):
    """`change` gets the header and the content, and returns both."""
    path = cache.path("arrays.pack")
    with open(path, "rb") as file:
        header, content = file.read().split(b"\n", 1)
    header, content = change(json.loads(header), content)
    with open(path, "wb") as file:
        file.write(json.dumps(header).encode() + b"\n" + content)


def test_small_arrays_come_without_opening_their_files(cache, opened):
    assert_loads(cache)
    assert opened == []


def test_large_arrays_are_not_kept_twice(tmp_path, opened):
    cache = IndexCache(str(tmp_path), "{}", "Some", "train")
    arrays = {**ARRAYS, "second": np.arange(4000, dtype=np.int64)}
    cache.store(arrays)
    assert not os.path.exists(cache.path("arrays.pack"))
    assert_loads(cache, arrays)
    assert opened == ["first.npy", "second.npy", "third.npy"]


def test_a_file_that_was_touched_is_looked_at(cache, opened):
    status = os.stat(cache.path("first.npy"))
    os.utime(cache.path("first.npy"), ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert_loads(cache)
    assert opened == ["first.npy", "second.npy", "third.npy"]


def test_a_file_that_was_changed_is_damaged(cache):
    with open(cache.path("first.npy"), "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x55")
    with pytest.warns(IndexCacheWarning, match="was written"):
        assert cache.load(NAMES) is None


def test_a_file_that_is_gone_is_damage(cache):
    os.unlink(cache.path("second.npy"))
    with pytest.warns(IndexCacheWarning, match="No such file"):
        assert cache.load(NAMES) is None


def test_fewer_or_other_names_are_read_from_files(cache, opened):
    assert list(cache.load(["second"])) == ["second"]
    assert opened == ["second.npy"]


@pytest.mark.parametrize(
    "change",
    [
        lambda header, content: (header, content[:-1]),
        lambda header, content: (header, content[:9] + b"x" + content[10:]),
        lambda header, content: (header, b""),
        lambda header, content: ({**header, "checksum": 5}, content),
        lambda header, content: ({"arrays": header["arrays"]}, content),
        lambda header, content: ({**header, "arrays": [["first", "<u4"]]}, content),
        lambda header, content: ({**header, "arrays": header["arrays"][0]}, content),
        lambda header, content: ({**header, "arrays": arrays_with(shape=[50])}, content),
        lambda header, content: ({**header, "arrays": arrays_with(dtype="no")}, content),
        lambda header, content: ([header], content),
        lambda header, content: ("é", content),
    ],
)
def test_a_copy_that_is_damaged(cache, change):
    change_pack(cache, change)
    with pytest.warns(IndexCacheWarning, match=r"arrays\.pack"):
        assert cache.load(NAMES) is None


def arrays_with(**change):
    first = {"name": "first", "dtype": "<u4", "shape": [5], **change}
    rest = [[name, a.dtype.str, list(a.shape)] for name, a in list(ARRAYS.items())[1:]]
    return [list(first.values()), *rest]


def test_a_copy_without_a_line(cache):
    with open(cache.path("arrays.pack"), "wb") as file:
        file.write(b"nothing")
    with pytest.warns(IndexCacheWarning, match=r"arrays\.pack"):
        assert cache.load(NAMES) is None


def test_a_cache_of_an_earlier_version_has_no_copy(cache, opened):
    os.unlink(cache.path("arrays.pack"))
    assert_loads(cache)
    assert len(opened) == 3


def test_a_url_has_none():
    cache = IndexCache("memory://packs/one", "{}", "Some", "train")
    cache.store(ARRAYS)
    assert_loads(cache)


def test_files_that_are_being_replaced(tmp_path):
    assert packed(ARRAYS, str(tmp_path / "x-")) is None


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    dtype=st.sampled_from(["<i4", "<u4", "<i8", "<i2", "|u1"]),
)
def test_any_arrays_come_back(lengths, dtype, tmp_path_factory):
    directory = tmp_path_factory.mktemp("pack")
    stem = str(directory / "x-")
    arrays = {f"a{i}": np.arange(n).astype(dtype) for i, n in enumerate(lengths)}
    for name, array in arrays.items():
        np.save(f"{stem}{name}.npy", array)
    data = packed(arrays, stem)
    assert unpacked(data, [*arrays, "more"], stem) is None
    for names in (list(arrays), None):
        found = unpacked(data, names, stem)
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
            assert found[name].flags.aligned
    if sum(lengths):
        data = data[:-8] + bytes([data[-8] ^ 1]) + data[-7:]
        with pytest.raises(DamagedFileError, match="not as written"):
            unpacked(data, list(arrays), stem)
