"""What is written, and what is refused."""

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
    SequenceLengthError,
    TokenError,
)

NO_SYNC = patch("os.fsync", new=lambda descriptor: None)


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


# Ways to say the same

DOCUMENTS = st.lists(st.lists(st.lists(st.integers(0, 255), max_size=4), max_size=4), max_size=6)


@NO_SYNC
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DOCUMENTS, st.sampled_from([np.uint8, np.uint16, np.int32, np.int64]), st.integers(1, 3))
def test_items_documents_and_batches_give_the_same_bytes(tmp_path, documents, dtype, batch):
    def lengths(document):
        return [len(sequence) for sequence in document]

    def flat(document):
        return [token for sequence in document for token in sequence]

    with IndexedDatasetBuilder(tmp_path / "items", dtype) as builder:
        for document in documents:
            for sequence in document:
                builder.add_item(sequence)
            builder.end_document()
        builder.finalize()
    with IndexedDatasetBuilder(tmp_path / "documents", dtype) as builder:
        for document in documents:
            builder.add_document(flat(document), lengths(document))
        builder.finalize()
    with IndexedDatasetBuilder(tmp_path / "batches", dtype) as builder:
        for start in range(0, len(documents), batch):
            some = documents[start : start + batch]
            builder.add_documents(
                np.array(flat([s for document in some for s in document]), np.int64),
                np.array([n for document in some for n in lengths(document)], np.int32),
                np.array([len(document) for document in some], np.int64),
            )
        builder.finalize()
    for suffix in (".bin", ".idx"):
        expected = (tmp_path / f"items{suffix}").read_bytes()
        assert (tmp_path / f"documents{suffix}").read_bytes() == expected
        assert (tmp_path / f"batches{suffix}").read_bytes() == expected
    sequences, boundaries = content(tmp_path / "items")
    assert sequences == [sequence for document in documents for sequence in document]
    assert boundaries == [0, *np.cumsum([len(document) for document in documents]).tolist()]


def test_each_length_is_a_document_unless_said_otherwise(builder, tmp_path):
    builder.add_documents(np.arange(5), np.array([2, 0, 3]))
    assert (builder.sequence_count, builder.document_count) == (3, 3)
    builder.finalize()
    assert content(tmp_path / "x") == ([[0, 1], [], [2, 3, 4]], [0, 1, 2, 3])


def test_an_open_document_takes_the_sequences_that_follow(builder, tmp_path):
    builder.add_item([1])
    builder.add_document([2, 3], [2])
    builder.finalize()
    assert content(tmp_path / "x") == ([[1], [2, 3]], [0, 2])


@pytest.mark.parametrize("tokens", [[[1, 2], [3, 4]], (1, 2, 3, 4), np.array([1, 2, 3, 4], "u8")])
def test_whatever_numpy_takes_for_numbers(builder, tmp_path, tokens):
    builder.add_item(tokens)
    builder.add_item(np.arange(1, 9)[::2])
    builder.add_item(np.array([True, False]))
    builder.end_document()
    builder.finalize()
    assert content(tmp_path / "x")[0] == [[1, 2, 3, 4], [1, 3, 5, 7], [1, 0]]


def test_modes(tmp_path):
    with IndexedDatasetBuilder(tmp_path / "x", np.int32, multimodal=True) as builder:
        builder.add_item([1], mode=3)
        builder.add_item([2])
        builder.end_document()
        builder.add_document([3, 4], [1, 1], modes=[5, -6])
        builder.add_document([5, 6], [1, 1])
        builder.add_document([], [], modes=[])
        builder.add_documents(np.array([7, 8]), np.array([1, 1]), modes=np.array([9, -128]))
        builder.finalize()
    dataset = IndexedDataset(tmp_path / "x", multimodal=True)
    assert dataset.sequence_modes.tolist() == [3, 0, 5, -6, 0, 0, 9, -128]
    assert len(dataset.document_indices) == 7


def test_the_names_of_the_files(tmp_path):
    for given_name in ("a.bin", "b", "c.idx", "d.v1"):
        with IndexedDatasetBuilder(tmp_path / given_name) as builder:
            builder.finalize()
    with IndexedDatasetBuilder(tmp_path / "e.bin") as builder:
        builder.finalize(tmp_path / "e.idx")
    assert names(tmp_path) == sorted(
        stem + suffix for stem in ("a", "b", "c.idx", "d.v1", "e") for suffix in (".bin", ".idx")
    )


def test_index_in_another_directory(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with IndexedDatasetBuilder(str(tmp_path / "x.bin")) as builder:
        builder.finalize(str(tmp_path / "elsewhere" / "y.idx"))
    assert names(tmp_path / "elsewhere") == ["y.idx"]
    assert "x.bin" in names(tmp_path)


# What is refused


@pytest.mark.parametrize(
    ("dtype", "token"),
    [(np.uint16, 65_536), (np.uint16, -1), (np.uint8, 256), (np.int8, 128), (np.int32, 2**31)],
)
def test_a_token_that_does_not_fit_names_its_document(tmp_path, dtype, token):
    limits, name = np.iinfo(dtype), np.dtype(dtype).name
    text = rf"the token id {token} does not fit in {name} \({limits.min} to {limits.max}\); use int"
    with IndexedDatasetBuilder(tmp_path / "x", dtype) as builder:
        builder.add_document([1, 2], [1, 1])
        builder.add_item([3])
        with pytest.raises(TokenError, match=rf"x\.bin: document 1, sequence 3, token 1: {text}"):
            builder.add_item([4, token])
        with pytest.raises(TokenError, match=rf"document 1, sequence 4, token 0: {text}"):
            builder.add_document([4, 5, token], [2, 1])
        builder.end_document()
        tokens, lengths = np.array([0, 0, 0, 0, token, 0], np.int64), np.array([1, 2, 0, 3])
        with pytest.raises(TokenError, match=rf"document 5, sequence 6, token 1: {text}"):
            builder.add_documents(tokens, lengths, np.array([1, 0, 1, 2]))
        builder.finalize()
    assert content(tmp_path / "x") == ([[1], [2], [3]], [0, 2, 3])


@pytest.mark.parametrize(
    ("dtype", "token", "advice"),
    [
        (np.uint16, 70_000, "use int32"),
        (np.int32, 2**31, "use int64"),
        (np.int64, 2**63, "no integer dtype of the format holds it"),
        (np.uint16, 0.5, "no integer dtype of the format holds it"),
    ],
)
def test_the_dtype_that_would_do_is_named(tmp_path, dtype, token, advice):
    with (
        IndexedDatasetBuilder(tmp_path / "x", dtype) as builder,
        pytest.raises(TokenError, match=rf"\); {advice}$"),
    ):
        builder.add_item([token])


def test_largest_ids_fit(builder, tmp_path):
    builder.add_document([65_499, 65_535, 0], [3])
    builder.finalize()
    assert content(tmp_path / "x")[0] == [[65_499, 65_535, 0]]


@pytest.mark.parametrize("tokens", [["a"], [None], [2**70], [1 + 2j], [[1, 2], [3]]])
def test_other_things_are_no_tokens(builder, tokens):
    with pytest.raises(ValueError, match=r"numbers|inhomogeneous"):
        builder.add_item(tokens)


def test_fractions_are_no_token_ids(builder):
    builder.add_item([1.0, 2.0])
    with pytest.raises(TokenError, match=r"document 0, sequence 1, token 1: .*2\.5 does not fit"):
        builder.add_item([1.0, 2.5])
    with pytest.raises(TokenError, match="nan does not fit"):
        builder.add_item([float("nan")])


def test_floating_point_files(tmp_path):
    with IndexedDatasetBuilder(tmp_path / "x", np.float32) as builder:
        builder.add_item([0.1, np.inf, 3])
        with pytest.raises(TokenError, match=r"the value 1e\+300 does not fit in float32; use"):
            builder.add_item([1e300])
        with pytest.raises(TokenError, match="the value 16777217 does not fit in float32"):
            builder.add_item([2**24 + 1])
        builder.end_document()
        builder.finalize()
    assert content(tmp_path / "x")[0] == [[np.float32(0.1), np.inf, 3.0]]


@pytest.mark.parametrize("dtype", [np.uint32, np.bool_, np.float16])
def test_dtypes_that_the_format_lacks(tmp_path, dtype):
    with pytest.raises(DTypeError, match="cannot store"):
        IndexedDatasetBuilder(tmp_path / "x", dtype)
    assert names(tmp_path) == []


def test_lengths_that_do_not_add_up(builder):
    for lengths in ([1], [3], [1, 2], []):
        with pytest.raises(ValueError, match=r"the lengths add up to .*, but there are 2 tokens"):
            builder.add_document([1, 2], lengths)
    with pytest.raises(SequenceLengthError, match="sequence 1 has length -1; the format stores"):
        builder.add_document([1, 2], [3, -1])
    with pytest.raises(SequenceLengthError, match=f"sequence 0 has length {2**31}; the format"):
        builder.add_document([1, 2], [2**31])


def test_documents_that_do_not_add_up(builder):
    tokens, lengths = np.arange(4), np.array([1, 3])
    with pytest.raises(ValueError, match="said to have 3 sequences in all, but there are 2 le"):
        builder.add_documents(tokens, lengths, np.array([1, 2]))
    with pytest.raises(ValueError, match="a document is said to have -1 sequences"):
        builder.add_documents(tokens, lengths, np.array([3, -1]))


def test_modes_that_do_not_fit(builder, tmp_path):
    with pytest.raises(ValueError, match="the file has none; pass multimodal=True"):
        builder.add_item([1], mode=1)
    with pytest.raises(ValueError, match="the file has none; pass multimodal=True"):
        builder.add_document([1], [1], modes=[0])
    with IndexedDatasetBuilder(tmp_path / "y", multimodal=True) as other:
        with pytest.raises(ValueError, match="1 modes for 2 sequences; give one for each"):
            other.add_document([1, 2], [1, 1], modes=[0])
        with pytest.raises(ValueError, match="modes go from -129 to 5; they must lie in -128 to"):
            other.add_document([1, 2], [1, 1], modes=[-129, 5])


def test_a_document_that_was_not_ended(builder, tmp_path):
    builder.add_document([1], [1])
    builder.add_item([2])
    builder.add_item([3])
    with pytest.raises(DocumentIndexError, match=r"x\.bin: 2 sequences were added after the last"):
        builder.finalize()
    builder.end_document()
    builder.finalize()
    assert content(tmp_path / "x") == ([[1], [2], [3]], [0, 1, 3])


def test_a_finished_builder_takes_nothing_more(builder):
    builder.finalize()
    for call in (
        lambda: builder.add_item([1]),
        lambda: builder.add_document([1], [1]),
        lambda: builder.end_document(),
        lambda: builder.finalize(),
        lambda: builder.add_index("y"),
    ):
        with pytest.raises(IndexedDatasetError, match="was finalized or aborted; start a new"):
            call()


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"directory .*nowhere does not exist; create it"):
        IndexedDatasetBuilder(tmp_path / "nowhere" / "x")


@pytest.mark.parametrize("durable", [True, False])
def test_only_durable_pairs_are_waited_for(tmp_path, monkeypatch, durable):
    waited = []
    monkeypatch.setattr("os.fsync", waited.append)
    with IndexedDatasetBuilder(tmp_path / "x", checksums=True, durable=durable) as builder:
        builder.add_document([1, 2], [2])
    assert IndexedDataset(tmp_path / "x")[0].tolist() == [1, 2]
    assert len(waited) == (6 if durable else 0)  # three files and their directory
