"""Several files into one, and a file's tokens in pieces."""

import os
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coredata.formats import (
    DocumentIndexError,
    DTypeError,
    IndexedDataset,
    IndexedDatasetBuilder,
    IndexedDatasetError,
    SequencePointerError,
    merge,
)
from coredata.formats.merge_kept import write_kept
from coredata.formats.stream import token_chunks


def content(prefix):
    dataset = IndexedDataset(prefix)
    return [array.tolist() for array in dataset[:]], dataset.document_indices.tolist()


@pytest.fixture
def files(write):
    return [
        write([[[1, 2]], [[3], []]], name="a"),
        write([], name="b"),
        write([[], [[4, 5, 6]]], name="c"),
        write([[], []], name="d"),
    ]


def test_boundaries_are_shifted(files, tmp_path):
    merged = merge(files, tmp_path / "all")
    assert content(tmp_path / "all") == ([[1, 2], [3], [], [4, 5, 6]], [0, 1, 3, 3, 4, 4, 4])
    assert (merged.sequences, merged.documents, merged.tokens) == (4, 6, 6)
    assert IndexedDataset(tmp_path / "all").dtype == np.uint16


def test_merging_is_writing_all_at_once(write, documents, tmp_path):
    split = [write(documents[:2], name="a"), write(documents[2:], name="b")]
    merge(split, tmp_path / "all")
    write(documents, name="once")
    for suffix in (".bin", ".idx"):
        once = (tmp_path / f"once{suffix}").read_bytes()
        assert (tmp_path / f"all{suffix}").read_bytes() == once


def test_only_empty_files(write, tmp_path):
    merged = merge([write([], name="a"), write([], name="b")], tmp_path / "all")
    assert (merged.sequences, merged.documents, merged.tokens) == (0, 0, 0)
    assert (tmp_path / "all.bin").stat().st_size == 0


def test_dtypes_must_agree(write, tmp_path):
    files = [write([[[1]]], np.uint16, "a"), write([[[70_000]]], np.int32, "b")]
    with pytest.raises(DTypeError, match=r"uint16 in .*a, int32 in .*b\); pass widen=True"):
        merge(files, tmp_path / "all")
    assert not IndexedDataset.exists(tmp_path / "all")
    merge(files, tmp_path / "all", widen=True)
    assert content(tmp_path / "all") == ([[1], [70_000]], [0, 1, 2])
    assert IndexedDataset(tmp_path / "all").dtype == np.int32


@pytest.mark.parametrize(
    ("dtypes", "common"),
    [
        ((np.uint8, np.int8), np.int16),
        ((np.uint16, np.int16), np.int32),
        ((np.uint8, np.uint16), np.uint16),
        ((np.uint16, np.int32, np.int64), np.int64),
        ((np.float32, np.float64), np.float64),
    ],
)
def test_the_narrowest_dtype_that_holds_all(write, tmp_path, dtypes, common):
    files = [write([[[k]]], dtype, f"part{k}") for k, dtype in enumerate(dtypes)]
    merge(files, tmp_path / "all", widen=True)
    assert IndexedDataset(tmp_path / "all").dtype == common
    assert content(tmp_path / "all")[0] == [[k] for k in range(len(dtypes))]


def test_ids_and_measurements_do_not_mix(write, tmp_path):
    files = [write([[[1]]], np.int32, "a"), write([[[1.5]]], np.float64, "b")]
    with pytest.raises(DTypeError, match="integers and floating-point values cannot be merged"):
        merge(files, tmp_path / "all", widen=True)


def test_modes_are_merged(write, tmp_path):
    files = [
        write([[[1], [2]]], name="a", modes=[3, 4]),
        write([], name="b"),
        write([[[5]]], name="c", modes=[-1]),
        write([[]], name="d", modes=[]),
    ]
    merged = merge(files, tmp_path / "all")
    assert merged.multimodal
    dataset = IndexedDataset(tmp_path / "all", multimodal=True)
    assert dataset.sequence_modes.tolist() == [3, 4, -1]
    assert dataset.document_indices.tolist() == [0, 2, 3, 3]


def test_modes_must_agree(write, tmp_path):
    files = [write([[[1]]], name="a", modes=[3]), write([[[1]]], name="b")]
    with pytest.raises(IndexedDatasetError, match=r"a has modes and .*b has none; merge files of"):
        merge(files, tmp_path / "all")


def test_what_merge_refuses(files, tmp_path):
    with pytest.raises(ValueError, match="nothing to merge; give at least one prefix"):
        merge([], tmp_path / "all")
    with pytest.raises(ValueError, match="a is both an input and the output"):
        merge(files, files[0])
    with pytest.raises(FileNotFoundError, match=r"none\.bin and .*none\.idx do not exist"):
        merge([*files, tmp_path / "none"], tmp_path / "all")


def test_a_damaged_input_leaves_no_output(files, tmp_path):
    with open(tmp_path / "c.bin", "ab") as file:
        file.write(b"xx")
    with pytest.raises(SequencePointerError, match=r"c\.bin has 8 bytes, but its sequences end"):
        merge(files, tmp_path / "all")
    assert [name for name in os.listdir(tmp_path) if "all" in name] == []


def test_another_writer_in_between_is_noticed(files, tmp_path):
    def overtaken(*arguments, **options):
        counts = write_kept(*arguments, **options)
        with IndexedDatasetBuilder(tmp_path / "all"):
            pass
        return counts

    with (
        patch("coredata.formats.merging.write_kept", new=overtaken),
        pytest.raises(IndexedDatasetError, match="has 0 sequences and 0 documents, but 4 and 6"),
    ):
        merge(files, tmp_path / "all")


def test_add_index_after_documents(files, tmp_path):
    with IndexedDatasetBuilder(tmp_path / "x", np.int32) as builder:
        builder.add_document([7], [1])
        with pytest.raises(DTypeError, match=r"a holds uint16, the file being written int32; pass"):
            builder.add_index(files[0])
        builder.add_index(files[0], widen=True)
        builder.add_item([8])
        with pytest.raises(DocumentIndexError, match=r"has 1 sequences; call end_document\(\) bef"):
            builder.add_index(files[0], widen=True)
        builder.end_document()
        builder.finalize()
    assert content(tmp_path / "x") == ([[7], [1, 2], [3], [], [8]], [0, 1, 2, 4, 5])


def test_widening_never_narrows(write, tmp_path):
    source = write([[[1]]], np.int32, "a")
    for dtype in ("uint16", "float64"):
        with (
            IndexedDatasetBuilder(tmp_path / "x", dtype) as builder,
            pytest.raises(DTypeError, match=f"int32, which {dtype} cannot always hold"),
        ):
            builder.add_index(source, widen=True)


@patch("os.fsync", new=lambda descriptor: None)
@settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 11))
def test_pieces_are_the_tokens_in_order(tmp_path, lengths, chunk):
    total = sum(lengths)
    with IndexedDatasetBuilder(tmp_path / "x", np.uint16) as builder:
        builder.add_documents(np.arange(total), np.array(lengths, np.int64))
        builder.finalize()
    pieces = list(token_chunks(IndexedDataset(tmp_path / "x"), np.dtype(np.int64), chunk))
    assert all(piece.size == chunk for piece in pieces[:-1])
    assert np.concatenate([np.empty(0), *pieces]).tolist() == list(range(total))
