"""Reading `.npy` files, whole and broken."""

import numpy as np
import pytest

from coredata.datasets import npy
from coredata.datasets.npy import DamagedFileError, open_npy

ARRAYS = [
    np.arange(5, dtype=np.uint32),
    np.arange(12, dtype=np.int32).reshape(6, 2),
    np.zeros((1, 2), np.int64),
    np.empty(0, np.int16),
    np.arange(100_000, dtype=np.int64),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_reads_what_numpy_saved(tmp_path, array):
    path = tmp_path / "a.npy"
    np.save(path, array)
    found = open_npy(str(path))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)
    assert found.size == 0 or not found.flags.writeable


def test_reads_an_older_and_a_newer_header(tmp_path):
    for version in [(1, 0), (2, 0), (3, 0)]:
        path = tmp_path / "a.npy"
        with open(path, "wb") as file:
            np.lib.format.write_array(file, ARRAYS[1], version=version)
        np.testing.assert_array_equal(open_npy(str(path)), ARRAYS[1])


def test_large_files_are_mapped(tmp_path, monkeypatch):
    """What is written to the file afterwards is seen; a small one was read."""
    monkeypatch.setattr(npy, "_SMALL", 1000)
    seen = []
    for length in (10, 1000):
        path = tmp_path / f"{length}.npy"
        np.save(path, np.zeros(length, np.int32))
        array = open_npy(str(path))
        with open(path, "r+b") as file:
            file.seek(-4, 2)
            file.write(b"\x01\x00\x00\x00")
        seen.append(int(array[-1]))
    assert seen == [0, 1]


def test_reads_a_url():
    import fsspec

    with fsspec.open("memory://npy/a.npy", "wb") as file:
        np.save(file, ARRAYS[1])
    np.testing.assert_array_equal(open_npy("memory://npy/a.npy"), ARRAYS[1])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "starts with b''"),
        (lambda data: b"\0" * len(data), "starts with b'"),
        (lambda data: b"some text", "starts with b'some t'"),
        (lambda data: data[:8], "has a header that is not that"),
        (lambda data: data[:60], "has a header that is not that"),
        (lambda data: data.replace(b"False", b"True "), "has a header that is not that"),
        (lambda data: data.replace(b"<i4", b"|O8"), "has a header that is not that"),
        (lambda data: data.replace(b"(6, 2)", b"(7, 2)"), "has 176 bytes; .* implies 184"),
        (lambda data: data[:-1], "has 175 bytes; its header .int32, shape .6, 2.. implies 176"),
        (lambda data: data + b"\0", "has 177 bytes"),
    ],
)
def test_broken_files(tmp_path, damage, message):
    path = tmp_path / "a.npy"
    np.save(path, ARRAYS[1])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedFileError, match=message):
        open_npy(str(path))


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_npy(str(tmp_path / "none.npy"))
