"""What a writer leaves behind: a complete pair of files, or nothing."""

import os
from unittest.mock import patch

import numpy as np
import pytest

from coredata.formats import (
    DocumentIndexError,
    IndexedDataset,
    IndexedDatasetBuilder,
    IndexedDatasetError,
    MissingFileError,
    verify_indexed,
)


def names(directory):
    return sorted(os.listdir(directory))


def content(prefix):
    dataset = IndexedDataset(prefix)
    return [array.tolist() for array in dataset[:]], dataset.document_indices.tolist()


@pytest.fixture
def builder(tmp_path):
    with IndexedDatasetBuilder(tmp_path / "x", np.uint16) as builder:
        yield builder
        builder.abort()


def test_nothing_is_visible_before_the_end(builder, tmp_path):
    builder.add_document([1], [1])
    assert [name for name in names(tmp_path) if not name.endswith(".tmp")] == []
    builder.finalize()
    assert names(tmp_path) == ["x.bin", "x.idx"]


def write_half(path, error):
    with IndexedDatasetBuilder(path) as builder:
        builder.add_document([1], [1])
        raise error("stop")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_an_aborted_writer_leaves_nothing(tmp_path, error):
    with pytest.raises(error):
        write_half(tmp_path / "x", error)
    assert names(tmp_path) == []


def test_the_end_of_the_block_finalizes(tmp_path):
    with IndexedDatasetBuilder(tmp_path / "x") as builder:
        builder.add_document([1], [1])
        assert [name for name in names(tmp_path) if not name.endswith(".tmp")] == []
    assert names(tmp_path) == ["x.bin", "x.idx"]
    assert content(tmp_path / "x") == ([[1]], [0, 1])


def test_a_block_that_aborts_leaves_nothing(tmp_path):
    with IndexedDatasetBuilder(tmp_path / "x") as builder:
        builder.add_document([1], [1])
        builder.abort()
    assert names(tmp_path) == []


def test_a_block_that_leaves_a_document_open_is_refused_and_leaves_nothing(tmp_path):
    with (
        pytest.raises(DocumentIndexError, match="call end_document"),
        IndexedDatasetBuilder(tmp_path / "x") as builder,
    ):
        builder.add_item([1])
    assert names(tmp_path) == []


def test_an_aborted_writer_leaves_the_old_files(write, prefix):
    before = content(prefix)
    with pytest.raises(KeyboardInterrupt):
        write_half(prefix, KeyboardInterrupt)
    assert content(prefix) == before


def test_old_files_are_replaced(write, prefix):
    write([[[9]]])
    assert content(prefix) == ([[9]], [0, 1])


def test_bin_appears_before_idx_and_an_old_idx_never_meets_a_new_bin(prefix, tmp_path):
    seen = []
    replace = os.replace

    def watched(source, target):
        seen.append((os.path.basename(target), names(tmp_path)))
        replace(source, target)

    with (
        patch("os.replace", new=watched),
        IndexedDatasetBuilder(prefix, np.uint16) as builder,
    ):
        builder.finalize()
    assert [target for target, _ in seen] == ["corpus.bin", "corpus.idx"]
    for _, present in seen:
        assert "corpus.idx" not in present
        assert "corpus.bin" in present


@pytest.mark.parametrize("failing", ["corpus.bin", "corpus.idx"])
def test_a_failed_rename_leaves_no_complete_pair(tmp_path, failing):
    replace = os.replace

    def refusing(source, target):
        if os.path.basename(target) == failing:
            raise PermissionError("no")
        replace(source, target)

    builder = IndexedDatasetBuilder(tmp_path / "corpus")
    with patch("os.replace", new=refusing), pytest.raises(PermissionError):
        builder.finalize()
    assert names(tmp_path) == ([] if failing == "corpus.bin" else ["corpus.bin"])
    with pytest.raises(MissingFileError):
        IndexedDataset(tmp_path / "corpus")


def test_a_full_disk_ends_the_builder(tmp_path):
    builder = IndexedDatasetBuilder(tmp_path / "x", np.int64)
    os.close(builder._pending().file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        builder.add_item(np.zeros(1 << 20, np.int64))
    with pytest.raises(IndexedDatasetError, match="was finalized or aborted"):
        builder.add_item([1])
    assert names(tmp_path) == []


def test_a_finished_file_verifies(builder, tmp_path):
    builder.add_documents(np.arange(100), np.full(10, 10))
    builder.finalize()
    verified = verify_indexed(tmp_path / "x", vocab_size=100)
    assert (verified.documents, verified.tokens) == (10, 100)
