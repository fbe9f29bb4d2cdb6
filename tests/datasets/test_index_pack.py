"""Small arrays that stand beside their checksums: when the copy counts, and when it does not."""

import base64
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


def records(cache):
    with open(cache.path("checksums.json")) as file:
        return json.load(file)


def change_records(cache, change):
    recorded = records(cache)
    change(recorded)
    with open(cache.path("checksums.json"), "w") as file:
        json.dump(recorded, file)


def test_small_arrays_come_without_opening_their_files(cache, opened):
    assert_loads(cache)
    assert opened == []


def test_large_arrays_are_not_kept_twice(tmp_path, opened):
    cache = IndexCache(str(tmp_path), "{}", "Some", "train")
    arrays = {**ARRAYS, "second": np.arange(4000, dtype=np.int64)}
    cache.store(arrays)
    assert "contents" not in records(cache)
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
        lambda recorded: recorded["contents"].update(bytes=base64.b64encode(b"x" * 72).decode()),
        lambda recorded: recorded["contents"].update(bytes="é"),
        lambda recorded: recorded["contents"].update(bytes="a"),
        lambda recorded: recorded["contents"].pop("bytes"),
        lambda recorded: recorded["contents"].pop("files"),
        lambda recorded: recorded.update(contents=[]),
        lambda recorded: recorded["first"].update(shape=[50]),
        lambda recorded: recorded["first"].update(dtype="no"),
        lambda recorded: recorded["first"].pop("dtype"),
    ],
)
def test_a_copy_that_is_damaged(cache, change):
    change_records(cache, change)
    with pytest.warns(IndexCacheWarning, match=r"checksums\.json"):
        assert cache.load(NAMES) is None


def test_records_of_an_earlier_version_have_no_copy(cache, opened):
    change_records(cache, lambda recorded: recorded.pop("contents"))
    assert_loads(cache)
    assert len(opened) == 3


def test_a_url_has_none():
    cache = IndexCache("memory://packs/one", "{}", "Some", "train")
    cache.store(ARRAYS)
    assert_loads(cache)


def test_files_that_are_being_replaced(tmp_path):
    assert packed(ARRAYS, str(tmp_path / "x-")) == {}


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
    recorded = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape)}
        for name, array in arrays.items()
    }
    assert unpacked(recorded, list(arrays), stem) is None
    recorded.update(packed(arrays, stem))
    found = unpacked(recorded, list(arrays), stem)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.aligned
    recorded["contents"]["checksum"] = "0" * 16
    with pytest.raises(DamagedFileError, match="not as written"):
        unpacked(recorded, list(arrays), stem)
