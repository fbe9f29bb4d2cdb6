"""Index arrays on disk: whole, or found out."""

import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from coredata.datasets import IndexCache, IndexCacheError, IndexCacheWarning
from coredata.datasets.npy import DamagedFileError

ARRAYS = {
    "first": np.arange(20_000, dtype=np.int32),
    "second": np.arange(20_000, dtype=np.uint32).reshape(10_000, 2),
}
NAMES = tuple(ARRAYS)


@pytest.fixture
def cache(tmp_path):
    return IndexCache(str(tmp_path / "deep" / "cache"), '{"class": "Some"}', "Some", "train")


def assert_loads(cache):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = cache.load(NAMES)
    assert loaded.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(loaded[name], array)


def test_nothing_there(cache):
    assert cache.load(NAMES) is None
    with pytest.raises(FileNotFoundError, match=r"build the dataset once without fast_cache_load"):
        cache.load_unchecked(NAMES)


def test_comes_back(cache):
    cache.store(ARRAYS)
    assert_loads(cache)
    np.testing.assert_array_equal(cache.load_unchecked(NAMES)["second"], ARRAYS["second"])


def test_files_are_the_references(cache):
    """The same names, and to the byte what numpy.save and a text file hold."""
    cache.store(ARRAYS)
    base = cache.path("").rpartition("/")[2]
    assert base == hashlib.md5(cache.description.encode()).hexdigest() + "-Some-train-"
    assert sorted(os.listdir(cache.directory)) == [
        f"{base}checksums.json",
        f"{base}description.txt",
        f"{base}first.npy",
        f"{base}second.npy",
    ]
    for name, array in ARRAYS.items():
        saved = io.BytesIO()
        np.save(saved, array)
        assert read(cache, f"{name}.npy") == saved.getvalue()
    assert read(cache, "description.txt") == b'{"class": "Some"}'


def read(cache, name):
    with open(cache.path(name), "rb") as file:
        return file.read()


def write(cache, name, data):
    with open(cache.path(name), "wb") as file:
        file.write(data)


def zero_middle(data):
    middle = len(data) // 2
    return data[:middle] + b"\0" * 4096 + data[middle + 4096 :]


DAMAGES = {
    "middle zeroed": zero_middle,
    "cut by a page": lambda data: data[:-4096],
    "page added": lambda data: data + b"\0" * 4096,
    "one bit": lambda data: data[:-3] + bytes([data[-3] ^ 4]) + data[-2:],
    "empty": lambda data: b"",
    "other dtype": lambda data: data.replace(b"'<i4'", b"'<f4'").replace(b"'<u4'", b"'<f4'"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damage_is_found_and_repaired(cache, name, damage):
    cache.store(ARRAYS)
    write(cache, f"{name}.npy", damage(read(cache, f"{name}.npy")))
    with pytest.warns(IndexCacheWarning, match=rf"{cache.directory} is damaged .*{name}\.npy"):
        assert cache.load(NAMES) is None
    cache.store(ARRAYS)
    assert_loads(cache)


@pytest.mark.parametrize("name", ["first.npy", "second.npy"])
def test_missing_array(cache, name):
    cache.store(ARRAYS)
    os.unlink(cache.path(name))
    with pytest.warns(IndexCacheWarning, match="No such file"):
        assert cache.load(NAMES) is None


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b"\xff"])
def test_damaged_checksums(cache, text):
    cache.store(ARRAYS)
    write(cache, "checksums.json", text)
    with pytest.warns(IndexCacheWarning, match="is damaged"):
        assert cache.load(NAMES) is None


def test_missing_description_means_unfinished(cache):
    cache.store(ARRAYS)
    os.unlink(cache.path("description.txt"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load(NAMES) is None


def test_description_is_written_last(cache, monkeypatch):
    written = []
    monkeypatch.setattr(IndexCache, "_write", lambda self, name, *parts: written.append(name))
    cache.store(ARRAYS)
    assert written == ["first.npy", "second.npy", "checksums.json", "description.txt"]


def test_without_checksums_it_loads_and_the_check_knows(cache):
    cache.store(ARRAYS)
    told = []
    cache.load(NAMES, lambda arrays, trusted: told.append(trusted))
    os.unlink(cache.path("checksums.json"))
    assert_loads(cache)
    cache.load(NAMES, lambda arrays, trusted: told.append(trusted))
    assert told == [True, False]


def test_the_check_may_object(cache):
    def object_to(arrays, trusted):
        raise DamagedFileError("they are odd")

    cache.store(ARRAYS)
    with pytest.warns(IndexCacheWarning, match="they are odd"):
        assert cache.load(NAMES, object_to) is None


def test_another_description_without_checksums(cache):
    cache.store(ARRAYS)
    os.unlink(cache.path("checksums.json"))
    write(cache, "description.txt", b'{"class":')
    with pytest.warns(IndexCacheWarning, match="describes another dataset"):
        assert cache.load(NAMES) is None


def test_directory_that_cannot_be_made(tmp_path):
    """Also where chmod stops nobody, as for root."""
    (tmp_path / "file").write_text("")
    directory = str(tmp_path / "file" / "cache")
    cache = IndexCache(directory, "{}", "Some", "train")
    assert cache.load(NAMES) is None
    with pytest.raises(IndexCacheError, match=f"cannot write .* in {directory}: .*None"):
        cache.store(ARRAYS)


def test_read_only_directory(cache, monkeypatch):
    def refuse(path, *args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("coredata.datasets.index_cache.atomic_write", refuse)
    with pytest.raises(IndexCacheError, match=f"{cache.directory}: Permission denied") as caught:
        cache.store(ARRAYS)
    assert caught.value.errno == errno.EACCES


def test_unreadable_file(cache, monkeypatch):
    def refuse(path, *args):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    cache.store(ARRAYS)
    monkeypatch.setattr("coredata.datasets.index_cache.open_npy", refuse)
    with pytest.raises(IndexCacheError, match=f"cannot read the index cache in {cache.directory}"):
        cache.load(NAMES)


FULL_DISK = """
import resource, signal, sys
import numpy as np
from coredata.datasets import IndexCache, IndexCacheError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    IndexCache(sys.argv[1], "{}", "Some", "train").store({"a": np.arange(200_000)})
except IndexCacheError as error:
    print(error)
"""


def test_no_room(tmp_path):
    """A limit on file sizes stands in for a full disk: a write fails half way. No file is left."""
    directory = str(tmp_path / "cache")
    limit = 100_000
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, directory, str(limit)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert f"cannot write the index cache in {directory}: File too large" in result.stdout
    assert "path_to_cache" in result.stdout
    assert os.listdir(directory) == []


def test_url():
    cache = IndexCache("memory://caches/one", "{}", "Some", "train")
    assert cache.load(NAMES) is None
    cache.store(ARRAYS)
    assert_loads(cache)


def test_checksums_can_be_read(cache):
    cache.store(ARRAYS)
    recorded = json.loads(read(cache, "checksums.json"))
    assert recorded["second"].keys() == {"dtype", "shape", "checksum"}
    assert recorded["second"]["shape"] == [10_000, 2]
