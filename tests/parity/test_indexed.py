"""Token files of the two libraries, each read by the other."""

import warnings
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coredata.formats import IndexedDataset, IndexedDatasetBuilder, best_dtype, merge

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from megatron.core.datasets import indexed_dataset as reference

DTYPES = [np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.float32, np.float64]
SEQUENCE = st.lists(st.integers(0, 127), max_size=5)
DOCUMENTS = st.lists(st.lists(st.tuples(SEQUENCE, st.integers(-128, 127)), max_size=4), max_size=6)
FAST = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# The reference hands tensors to numpy in a way that numpy has given up.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def write(builder, documents, idx_path, as_tokens, by_document):
    """The same calls on either library's builder."""
    for document in documents:
        if by_document:
            flat = [token for sequence, _ in document for token in sequence]
            lengths = [len(sequence) for sequence, _ in document]
            modes = [mode for _, mode in document] if builder.multimodal else None
            builder.add_document(as_tokens(flat), lengths, modes)
        else:
            for sequence, mode in document:
                builder.add_item(as_tokens(sequence), mode if builder.multimodal else 0)
            builder.end_document()
    builder.finalize(idx_path)


def write_ours(path, documents, dtype, multimodal=False, by_document=False):
    with IndexedDatasetBuilder(f"{path}.bin", dtype, multimodal) as builder:
        write(builder, documents, f"{path}.idx", np.array, by_document)


def write_theirs(path, documents, dtype, multimodal=False, by_document=False):
    builder = reference.IndexedDatasetBuilder(f"{path}.bin", dtype, multimodal)
    write(builder, documents, f"{path}.idx", torch.tensor, by_document)


def same_bytes(first, second):
    return all(
        first.with_suffix(suffix).read_bytes() == second.with_suffix(suffix).read_bytes()
        for suffix in (".bin", ".idx")
    )


@patch("os.fsync", new=lambda descriptor: None)
@FAST
@given(DOCUMENTS, st.sampled_from(DTYPES), st.booleans(), st.booleans())
def test_both_write_the_same_bytes(tmp_path, documents, dtype, multimodal, by_document):
    write_ours(tmp_path / "ours", documents, dtype, multimodal, by_document)
    write_theirs(tmp_path / "theirs", documents, dtype, multimodal, by_document)
    assert same_bytes(tmp_path / "ours", tmp_path / "theirs")


def expect_equal(ours, theirs, multimodal):
    assert len(ours) == len(theirs)
    np.testing.assert_array_equal(ours.sequence_lengths, theirs.sequence_lengths)
    np.testing.assert_array_equal(ours.document_indices, theirs.document_indices)
    np.testing.assert_array_equal(ours.sequence_pointers, theirs.index.sequence_pointers)
    for index in range(-len(theirs), len(theirs)):
        mine, other = ours[index], theirs[index]
        if multimodal:
            assert mine[1] == other[1]
            assert mine[1].dtype == other[1].dtype
            mine, other = mine[0], other[0]
        assert mine.dtype == other.dtype
        np.testing.assert_array_equal(mine, other)
        half = len(other) // 2
        part, expected = ours.get(index, half), theirs.get(index, half)
        np.testing.assert_array_equal(
            part[0] if multimodal else part, expected[0] if multimodal else expected
        )
    if len(theirs):
        some = slice(len(theirs) // 2, None)
        mine, other = ours[some], theirs[some]
        if multimodal:
            np.testing.assert_array_equal(mine[1], other[1])
            mine, other = mine[0], other[0]
        assert [array.tolist() for array in mine] == [array.tolist() for array in other]


@patch("os.fsync", new=lambda descriptor: None)
@FAST
@given(DOCUMENTS, st.sampled_from(DTYPES), st.booleans(), st.booleans(), st.booleans())
def test_both_read_the_same_values(tmp_path, documents, dtype, multimodal, mmap, ours_wrote):
    tokens = sum(len(sequence) for document in documents for sequence, _ in document)
    path = tmp_path / "x"
    (write_ours if ours_wrote else write_theirs)(path, documents, dtype, multimodal)
    ours = IndexedDataset(str(path), multimodal, mmap)
    # The reference cannot map a .bin file of 0 bytes.
    theirs = reference.IndexedDataset(str(path), multimodal, mmap and tokens > 0)
    expect_equal(ours, theirs, multimodal)


@patch("os.fsync", new=lambda descriptor: None)
@FAST
@given(st.lists(DOCUMENTS, min_size=1, max_size=3), st.sampled_from([np.uint16, np.int32]))
def test_both_merge_to_the_same_bytes(tmp_path, corpora, dtype):
    prefixes = []
    for number, documents in enumerate(corpora):
        prefixes.append(str(tmp_path / f"part{number}"))
        write_theirs(prefixes[-1], documents, dtype)
    builder = reference.IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype)
    with patch("gc.collect"):  # the reference calls it for each file
        for prefix in prefixes:
            builder.add_index(prefix)
    builder.finalize(str(tmp_path / "theirs.idx"))
    merge(prefixes, tmp_path / "ours")
    assert same_bytes(tmp_path / "ours", tmp_path / "theirs")


@pytest.mark.parametrize("vocab_size", [1, 268, 65_499, 65_500, 65_536, 65_537, None])
def test_the_dtype_of_a_vocabulary(vocab_size):
    assert best_dtype(vocab_size) == reference.DType.optimal_dtype(vocab_size)


def test_known_counts_mean_the_same(tmp_path):
    documents = [[([1, 2], 0), ([3], 0)], [], [([4], 0)]]
    write_theirs(tmp_path / "x", documents, np.uint16)
    options = {"sequences_per_dataset": (3, 4), "dtype_code": 8, "fast_cache_load": True}
    ours = IndexedDataset(str(tmp_path / "x"), **options)
    theirs = reference.IndexedDataset(str(tmp_path / "x"), **options)
    expect_equal(ours, theirs, multimodal=False)
