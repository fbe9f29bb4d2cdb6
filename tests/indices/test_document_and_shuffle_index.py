import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coredata.indices import (
    build_document_index,
    build_shuffle_index,
    document_index_dtype,
    mt19937_seed,
    sample_index_dtype,
    shuffle_index_dtype,
)


@given(
    st.lists(st.integers(0, 2**31 - 1), min_size=0, max_size=30),
    st.integers(1, 6),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@example([4, 5, 6, 7, 8], 2, True, 3)
@settings(deadline=None)
def test_document_index_is_numpys_shuffle_of_the_repeated_documents(documents, epochs, last, seed):
    random = np.random.RandomState(seed)
    if last and epochs > 1:
        first = np.array(documents * (epochs - 1), np.int32)
        final = np.array(documents, np.int32)
        random.shuffle(first)
        random.shuffle(final)
        expected = np.concatenate([first, final])
    else:
        expected = np.array(documents * epochs, np.int32)
        random.shuffle(expected)
    index = build_document_index(np.array(documents, np.int64), epochs, mt19937_seed(seed), last)
    assert index.dtype == np.int32
    np.testing.assert_array_equal(index, expected)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_shuffle_index_is_two_of_numpys_shuffles(before, after, seed):
    random = np.random.RandomState(seed)
    first = np.arange(before, dtype=np.uint32)
    last = np.arange(before, before + after, dtype=np.uint32)
    random.shuffle(first)
    random.shuffle(last)
    index = build_shuffle_index(before, before + after, mt19937_seed(seed))
    assert index.dtype == np.uint32
    np.testing.assert_array_equal(index, np.concatenate([first, last]))


@pytest.mark.parametrize("before", [-1, 11])
def test_shuffle_index_of_more_samples_than_there_are(before):
    with pytest.raises(ValueError, match=rf"samples_before: {before} is outside 0 … 10"):
        build_shuffle_index(before, 10, mt19937_seed(0))


def test_dtypes():
    assert document_index_dtype(2**31 - 1, 5) == np.int32
    assert document_index_dtype(2**31, 5) == np.int64
    assert document_index_dtype(5, 2**31) == np.int64
    assert sample_index_dtype(2**31 - 1, 5) == np.int32
    assert sample_index_dtype(2**31, 5) == np.int64
    assert sample_index_dtype(5, 2**31 - 1) == np.int32
    assert sample_index_dtype(5, 2**31) == np.int64
    assert shuffle_index_dtype(2**32 - 3) == np.uint32
    assert shuffle_index_dtype(2**32 - 2) == np.int64


def test_high_document_numbers_stay_exact():
    index = build_document_index(np.array([2**31, 7]), 2, mt19937_seed(0), False)
    assert index.dtype == np.int64
    assert sorted(index.tolist()) == [7, 7, 2**31, 2**31]
