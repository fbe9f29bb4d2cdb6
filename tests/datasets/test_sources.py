"""Sources of tokens that need no file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.datasets import ArraySource, MockGPTLowLevelDataset, TokenSource
from coredata.text import ByteTokenizer


def int64(*values):
    return np.array(values, np.int64)


def array_source():
    return ArraySource(np.arange(10, dtype=np.uint16), np.array([3, 0, 5, 2], np.int32))


def mock_source():
    return MockGPTLowLevelDataset(ByteTokenizer(vocab_size=300))


SOURCES = pytest.mark.parametrize("make", [array_source, mock_source])


@SOURCES
def test_they_are_token_sources(make):
    source = make()
    assert isinstance(source, TokenSource)
    assert source.sequence_lengths.dtype == np.int32
    assert source.identity()["tokens"] == source.sequence_lengths.sum()


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dtype=st.sampled_from([np.int32, np.int64]))
@pytest.mark.parametrize("make", [array_source, mock_source])
def test_ranges_are_slices_of_sequences(make, data, dtype):
    source = make()
    spans, filled = [], 0
    for _ in range(data.draw(st.integers(0, 5))):
        sequence = data.draw(st.integers(0, min(len(source), 50) - 1))
        length = int(source.sequence_lengths[sequence])
        offset = data.draw(st.integers(0, length))
        spans.append((sequence, offset, data.draw(st.integers(0, length - offset)), filled))
        filled += spans[-1][2] + 1
    out = np.full(filled, -7, dtype)
    expected = out.copy()
    for sequence, offset, length, to in spans:
        expected[to : to + length] = source[sequence][offset : offset + length]
    columns = np.array(spans, np.int64).reshape(-1, 4).T
    source.read_into(*(np.ascontiguousarray(c) for c in columns[:3]), out, columns[3].copy())
    np.testing.assert_array_equal(out, expected)


@SOURCES
@pytest.mark.parametrize(
    ("span", "error", "message"),
    [
        ((-1, 0, 1, 0), IndexError, "span 0 asks for sequence -1, but there are"),
        ((100000, 0, 1, 0), IndexError, "span 0 asks for sequence 100000"),
        ((0, -1, 1, 0), ValueError, "asks for 1 tokens from offset -1 of sequence 0"),
        ((0, 1, 5000, 0), ValueError, "asks for 5000 tokens from offset 1 of sequence 0, which"),
        ((0, 0, 2, 3), ValueError, "span 0 writes 2 tokens at 3 of a buffer of 4"),
        ((0, 0, 2, -1), ValueError, "span 0 writes 2 tokens at -1"),
    ],
)
def test_wrong_spans(make, span, error, message):
    out = np.zeros(4, np.int64)
    columns = [int64(value) for value in span]
    with pytest.raises(error, match=message):
        make().read_into(*columns[:3], out, columns[3])
    assert not out.any()


@pytest.mark.parametrize(
    ("lengths", "message"), [([3, -1], "got -1"), ([3, 5], "add up to 8, but there are 10")]
)
def test_lengths_must_fit(lengths, message):
    with pytest.raises(ValueError, match=message):
        ArraySource(np.arange(10), np.array(lengths))


def test_mock_documents_count_up_and_end():
    source = MockGPTLowLevelDataset(ByteTokenizer(vocab_size=300))
    lengths = np.random.default_rng(0).integers(1, 4096, 100000, dtype=np.int32)
    np.testing.assert_array_equal(source.sequence_lengths, lengths)
    for sequence, length in enumerate(lengths[:20].tolist()):
        expected = [*(np.arange(1, length) % 300), 256]
        np.testing.assert_array_equal(source[sequence], expected)
        np.testing.assert_array_equal(source.get(sequence, 2, length - 2), expected[2:])


def test_mock_needs_a_vocabulary_and_an_end():
    with pytest.raises(ValueError, match="mock data need a vocab_size and an eod; object has None"):
        MockGPTLowLevelDataset(object())


def test_identity_tells_tokens_apart():
    lengths = np.array([2])
    first = ArraySource(np.array([1, 2]), lengths).identity()
    assert first == ArraySource(np.array([1, 2]), lengths).identity()
    assert first != ArraySource(np.array([1, 3]), lengths).identity()
