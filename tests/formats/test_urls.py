"""Prefixes behind URLs: written, read, merged and verified whole."""

import os
import pickle

import fsspec
import numpy as np
import pytest

from coredata.formats import (
    IndexedDataset,
    IndexedDatasetBuilder,
    MagicError,
    MissingFileError,
    merge,
    verify_indexed,
)
from coredata.storage import RangedObject, atomic_write, read_bytes, remove


@pytest.fixture(params=["memory", "file"])
def url(request, tmp_path):
    (tmp_path / "files").mkdir()
    memory = f"memory://formats{tmp_path}/files"
    return f"{memory}/x" if request.param == "memory" else f"file://{tmp_path}/files/x"


def write(url, documents, dtype=np.uint16):
    with IndexedDatasetBuilder(url, dtype) as builder:
        for document in documents:
            builder.add_document(document, [len(document)])
        builder.finalize()


@pytest.mark.parametrize("mmap", [True, False])
def test_round_trip(url, mmap):
    write(url, [[1, 2], [], [3]])
    dataset = IndexedDataset(url, mmap=mmap)
    assert [array.tolist() for array in dataset] == [[1, 2], [], [3]]
    assert [array.tolist() for array in dataset[1:]] == [[], [3]]
    out = np.zeros(3, np.int64)
    dataset.read_into(np.array([2, 0]), np.array([0, 0]), np.array([1, 2]), out, np.array([0, 1]))
    assert out.tolist() == [3, 1, 2]
    assert dataset.identity()["name"] == "x"
    again = pickle.loads(pickle.dumps(dataset))
    assert again[0].tolist() == [1, 2]


def test_the_same_bytes_as_a_local_file(url, tmp_path):
    write(url, [[1, 2], []])
    write(str(tmp_path / "local"), [[1, 2], []])
    for suffix in (".bin", ".idx"):
        assert read_bytes(url + suffix) == (tmp_path / f"local{suffix}").read_bytes()


def test_an_aborted_writer_leaves_nothing(url, tmp_path):
    with IndexedDatasetBuilder(url) as builder:
        builder.add_document([1], [1])
        builder.abort()
    assert not IndexedDataset.exists(url)
    assert os.listdir(tmp_path / "files") == []
    with pytest.raises(MissingFileError, match=r"x\.bin and .*x\.idx do not exist"):
        IndexedDataset(url)


def test_a_missing_half(url):
    write(url, [[1]])
    remove(url + ".bin")
    with pytest.raises(MissingFileError, match=r"x\.bin does not exist, although .*x\.idx does"):
        IndexedDataset(url)


def test_broken_files(url):
    write(url, [[1]])
    with atomic_write(url + ".idx") as file:
        file.write(b"text, and nothing else")
    with pytest.raises(MagicError, match=r"x\.idx is not an index file.*looks like text"):
        IndexedDataset(url)


def test_merge_and_verify(url):
    write(url, [[1]])
    write(url + "2", [[2], []])
    merged = merge([url, url + "2"], url + "3")
    assert verify_indexed(url + "3", vocab_size=3) == merged
    assert [array.tolist() for array in IndexedDataset(url + "3")] == [[1], [2], []]


def test_files_from_memory_are_read_once(monkeypatch):
    write("memory://formats/once", [[1, 2]])
    reads = []
    memory = fsspec.filesystem("memory")
    fetch = type(memory).cat_file
    monkeypatch.setattr(
        type(memory), "cat_file", lambda self, path, **k: reads.append(path) or fetch(self, path)
    )
    dataset = IndexedDataset("memory://formats/once")
    assert isinstance(dataset.bin_reader, RangedObject)
    for _ in range(3):
        assert dataset[0].tolist() == [1, 2]
        assert len(dataset) == 1
    assert sorted(reads) == ["/formats/once.bin", "/formats/once.idx"]


def test_storage_options_reach_the_file_system():
    options = {"skip_instance_cache": True}
    with IndexedDatasetBuilder("memory://formats/options", storage_options=options) as builder:
        builder.finalize()
    dataset = IndexedDataset("memory://formats/options", storage_options=options)
    assert len(pickle.loads(pickle.dumps(dataset))) == 0
    with pytest.raises(TypeError):
        IndexedDataset("memory://formats/options", storage_options={"fo": 1, "protocol": 2, 3: 4})
