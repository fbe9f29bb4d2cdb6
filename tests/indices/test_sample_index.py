import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.indices import build_sample_index, number_of_samples

LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=30)


def walk(lengths, document_index, sequence_length, samples, extra_token):
    """The sample index again, in plain Python: one row after the other."""
    rows = [(0, 0)]
    position, offset = 0, 0
    for _ in range(samples):
        remaining = sequence_length + extra_token
        while True:
            taken = lengths[document_index[position]] - offset
            remaining -= taken
            if remaining <= 0:
                offset += remaining + taken - extra_token
                break
            if position == len(document_index) - 1:
                offset = lengths[document_index[position]] - extra_token
                break
            position, offset = position + 1, 0
        rows.append((position, offset))
    return rows


@given(st.data(), LENGTHS, st.integers(1, 20), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=200)
def test_rows_match_the_plain_walk(data, lengths, sequence_length, extra_token, drop_last):
    entry = st.integers(0, len(lengths) - 1)
    document_index = data.draw(st.lists(entry, min_size=1, max_size=60))
    tokens = sum(lengths[document] for document in document_index)
    samples = number_of_samples(1, tokens, sequence_length, extra_token, drop_last)
    rows = build_sample_index(
        np.array(lengths, np.int32),
        np.array(document_index, np.int32),
        sequence_length,
        samples,
        extra_token,
    )
    assert rows.dtype == np.int32
    expected = walk(lengths, document_index, sequence_length, samples, extra_token)
    assert [tuple(row) for row in rows.tolist()] == expected


def test_long_documents_take_int64():
    lengths = np.array([2**31 + 10, 6], np.int64)
    rows = build_sample_index(lengths, np.array([1, 0], np.int32), 2**30, 2)
    assert rows.dtype == np.int64
    assert rows.tolist() == [[0, 0], [1, 2**30 - 6], [1, 2**31 - 6]]


def test_tokens_past_32_bits():
    # 5 documents of 2^31 - 1 tokens: the sums pass 2^31 though no single number does.
    lengths = np.full(5, 2**31 - 1, np.int32)
    rows = build_sample_index(lengths, np.arange(5, dtype=np.int32), 2**31 - 1, 4)
    assert rows.dtype == np.int32
    assert rows.tolist() == [[0, 0], [1, 0], [2, 0], [3, 0], [4, 0]]


def test_zero_length_documents_at_sample_edges():
    # S = 4 with the extra token: 5 tokens, then nothing, then 4 more, then nothing.
    lengths = np.array([5, 0, 4, 0], np.int32)
    in_order = np.arange(4, dtype=np.int32)
    assert build_sample_index(lengths, in_order, 4, 2).tolist() == [[0, 0], [0, 4], [2, 3]]
    # An empty document first, and one exactly where a sample ends without an extra token.
    around = np.array([1, 0, 1, 2, 3], np.int32)
    rows = build_sample_index(lengths, around, 5, 1, extra_token=False)
    assert rows.tolist() == [[0, 0], [1, 5]]


def test_a_partial_sample_that_ends_in_an_empty_document():
    # The last row is (last entry, length - 1) by the rule, and -1 means "before its first token".
    lengths = np.array([6, 0], np.int32)
    rows = build_sample_index(lengths, np.array([0, 1], np.int32), 4, 2)
    assert rows.tolist() == [[0, 0], [0, 4], [1, -1]]


def test_read_only_and_unaligned_arrays():
    lengths = np.frombuffer(b"\0\0" + np.array([3, 5, 4], np.int32).tobytes(), np.int32, 3, 2)
    index = np.array([2, 0, 1], np.int32)
    index.flags.writeable = False
    assert not lengths.flags.aligned
    assert not lengths.flags.writeable
    assert build_sample_index(lengths, index, 4, 2).tolist() == [[0, 0], [1, 0], [2, 1]]


def test_no_samples_and_no_documents():
    nothing = np.zeros(0, np.int32)
    assert build_sample_index(nothing, nothing, 8, 0).tolist() == [[0, 0]]


def test_more_samples_than_tokens():
    lengths, index = np.full(3, 4, np.int32), np.arange(3, dtype=np.int32)
    for samples in (4, 100):
        with pytest.raises(ValueError, match=rf"3 documents do not have .* {samples} samples of 4"):
            build_sample_index(lengths, index, 4, samples)
    with pytest.raises(ValueError, match=r"0 documents do not have the tokens for 1 samples"):
        build_sample_index(lengths, index[:0], 4, 1)


@pytest.mark.parametrize("document", [-1, 3, 2**31 - 1, -(2**31)])
def test_a_document_that_is_not_there(document):
    index = np.array([0, 1, document], np.int32)
    with pytest.raises(IndexError, match=rf"entry 2 is document {document}, .* has 3 sequences"):
        build_sample_index(np.full(3, 4, np.int32), index, 4, 2)


def test_a_negative_length():
    lengths = np.array([4, -5, 4], np.int32)
    with pytest.raises(ValueError, match=r"sequence 1 has length -5; the file is damaged"):
        build_sample_index(lengths, np.arange(3, dtype=np.int32), 4, 2)
