"""The bulk read, held to a plain twin on sound files and on index arrays of any numbers."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coredata.formats import DType, IndexedDataset, SequencePointerError, TokenError
from coredata.formats.gather import (
    NO_SUCH_SEQUENCE,
    SEQUENCE_LEAVES_FILE,
    SPAN_LEAVES_OUTPUT,
    SPAN_LEAVES_SEQUENCE,
    SPANS_FIT,
    SPANS_UNALIGNED,
    gather,
    plan_spans,
)

FLAT = [[1, 2, 3], [], [4], [5, 6], [7, 8, 9, 10]]


def ints(*values):
    return np.array(values, np.int64)


@pytest.fixture(params=["mapped", "positional"])
def mmap(request):
    return request.param == "mapped"


@pytest.fixture
def dataset(prefix, mmap):
    return IndexedDataset(prefix, mmap=mmap)


# The plan


def plan_twin(lengths, pointers, itemsize, file_size, spans, out_size):
    """As the kernel, in unbounded integers."""
    starts, status = [], SPANS_FIT
    for i, (sequence, offset, length, out_offset) in enumerate(spans):
        if not 0 <= sequence < len(lengths):
            return NO_SUCH_SEQUENCE, i, starts
        if offset < 0 or length < 0 or offset + length > lengths[sequence]:
            return SPAN_LEAVES_SEQUENCE, i, starts
        if out_offset < 0 or out_offset + length > out_size:
            return SPAN_LEAVES_OUTPUT, i, starts
        start = pointers[sequence] + offset * itemsize
        if pointers[sequence] < 0 or start + length * itemsize > file_size:
            return SEQUENCE_LEAVES_FILE, i, starts
        starts.append(start)
        if start % itemsize:
            status = SPANS_UNALIGNED
    return status, 0, starts


def near(*borders):
    """Integers around the borders that matter, and any others."""
    close = st.sampled_from(borders).flatmap(lambda border: st.integers(border - 3, border + 3))
    return close | st.integers(-(2**63), 2**63 - 1)


def small(limit):
    return st.integers(0, limit) | near(0, limit).filter(lambda value: -(2**63) <= value < 2**63)


LENGTHS = st.integers(0, 9) | st.integers(-(2**31), 2**31 - 1)
SPANS = st.lists(st.tuples(small(4), small(9), small(9), small(40)), max_size=6)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(LENGTHS, small(64)), min_size=1, max_size=5),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(0, 200),
    SPANS,
    st.integers(0, 50),
)
def test_plan_as_its_twin_whatever_the_numbers(entries, itemsize, file_size, spans, out_size):
    lengths = np.array([length for length, _ in entries], np.int32)
    pointers = np.array([pointer for _, pointer in entries], np.int64)
    columns = np.array(spans, np.int64).reshape(-1, 4).T.copy()
    starts = np.full(len(spans), -1, np.int64)
    status, span = plan_spans(
        lengths, pointers, itemsize, file_size, *columns[:3], out_size, columns[3], starts
    )
    expected = plan_twin(lengths.tolist(), pointers.tolist(), itemsize, file_size, spans, out_size)
    assert (status, span) == expected[:2]
    assert starts[: len(expected[2])].tolist() == expected[2]


def test_no_comparison_of_the_plan_overflows():
    top = 2**63 - 1
    for values in [(0, top, 1, 0), (0, 1, top, 0), (0, 0, 1, top), (top, 0, 0, 0)]:
        columns = [ints(value) for value in values]
        status, _ = plan_spans(
            np.array([5], np.int32), ints(0), 8, 100, *columns[:3], 5, columns[3], ints(0)
        )
        assert status not in (SPANS_FIT, SPANS_UNALIGNED)
    for pointer in (top, top - 7, -top):
        status, _ = plan_spans(
            np.array([5], np.int32), ints(pointer), 8, 100, *[ints(0)] * 3, 5, ints(0), ints(0)
        )
        assert status == SEQUENCE_LEAVES_FILE


# The copy


def gather_twin(tokens, starts, itemsize, lengths, out, out_offsets):
    for start, length, begin in zip(starts, lengths, out_offsets, strict=True):
        out[begin : begin + length] = tokens[start // itemsize :][:length]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 255), max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 4)), max_size=6),
    st.sampled_from([np.uint8, np.int32]),
)
def test_gather_as_its_twin(values, spans, dtype):
    tokens = np.array(values, dtype)
    tokens.flags.writeable = False
    begins = [min(begin, tokens.size) for begin, _, _ in spans]
    lengths = [
        min(length, tokens.size - b) for b, (_, length, _) in zip(begins, spans, strict=True)
    ]
    gaps = np.array([gap for _, _, gap in spans], np.int64)
    lengths = np.array(lengths, np.int64)
    out_offsets = np.cumsum(lengths + gaps) - lengths
    out = np.full(int((lengths + gaps).sum()), -7, np.int64)
    expected = out.copy()
    arguments = (tokens, np.array(begins, np.int64) * tokens.itemsize, tokens.itemsize, lengths)
    gather(*arguments, out, out_offsets)
    gather_twin(*arguments, expected, out_offsets)
    np.testing.assert_array_equal(out, expected)


# Through a dataset


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.integers(0, 4).flatmap(
            lambda s: st.tuples(
                st.just(s), st.integers(0, len(FLAT[s])), st.integers(0, 4), st.integers(0, 3)
            )
        ),
        max_size=10,
    ),
    st.sampled_from([np.uint16, np.int64, np.int32, np.uint8]),
)
def test_spans_are_those_of_get(dataset, spans, dtype):
    sequences, offsets, lengths, gaps = np.array(spans, np.int64).reshape(-1, 4).T.copy()
    lengths = np.minimum(lengths, dataset.sequence_lengths[sequences] - offsets)
    out_offsets = np.cumsum(lengths + gaps) - lengths
    out = np.full(int((lengths + gaps).sum()) + 1, 99, dtype)
    expected = out.copy()
    for s, o, n, b in zip(sequences, offsets, lengths, out_offsets, strict=True):
        expected[b : b + n] = dataset.get(s, o, n)
    dataset.read_into(sequences, offsets, lengths, out, out_offsets)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("stored", [member.name for member in DType])
@pytest.mark.parametrize("wanted", [np.int64, np.int32, np.float64])
def test_dtypes_are_converted_on_the_way(write, mmap, stored, wanted):
    dataset = IndexedDataset(write([[[1, 2, 100]]], stored), mmap=mmap)
    out = np.zeros(4, wanted)
    dataset.read_into(ints(0, 0), ints(1, 0), ints(2, 1), out, ints(1, 0))
    assert out.tolist() == [1, 2, 100, 0]


def test_only_what_is_read_has_to_fit(write, mmap):
    dataset = IndexedDataset(write([[[1, 300, 2]]], np.int32), mmap=mmap)
    out = np.zeros(2, np.uint8)
    dataset.read_into(ints(0, 0), ints(0, 2), ints(1, 1), out, ints(1, 0))
    assert out.tolist() == [2, 1]
    with pytest.raises(TokenError, match=r"corpus.*the token id 300 does not fit in uint8 \(0 to"):
        dataset.read_into(ints(0), ints(0), ints(2), out, ints(0))
    assert out.tolist() == [2, 1]


def test_fractions_are_not_token_ids(write, mmap):
    dataset = IndexedDataset(write([[[1.0, 2.5]]], np.float32), mmap=mmap)
    with pytest.raises(TokenError, match=r"2\.5 does not fit in int64"):
        dataset.read_into(ints(0), ints(0), ints(2), np.zeros(2, np.int64), ints(0))


@pytest.mark.parametrize(
    ("span", "error", "text"),
    [
        ((5, 0, 0, 0), IndexError, "span 1 asks for sequence 5; there are 5 sequences, 0 to 4"),
        ((-1, 0, 0, 0), IndexError, "span 1 asks for sequence -1"),
        ((4, 3, 2, 0), ValueError, "asks for 2 tokens from token 3 of sequence 4, which has 4 to"),
        ((4, -1, 2, 0), ValueError, "asks for 2 tokens from token -1 of sequence 4"),
        ((4, 0, -1, 0), ValueError, "asks for -1 tokens from token 0 of sequence 4"),
        (
            (4, 0, 4, 5),
            ValueError,
            "span 1 puts 4 tokens at 5 of an output array of 8; it does",
        ),
        ((4, 0, 4, -1), ValueError, "span 1 puts 4 tokens at -1 of an output array of 8"),
    ],
)
def test_a_bad_span_is_named_and_nothing_is_written(dataset, span, error, text):
    out = np.full(8, 9, np.int64)
    columns = [ints(first, second) for first, second in zip((0, 0, 3, 0), span, strict=True)]
    with pytest.raises(error, match=text):
        dataset.read_into(*columns[:3], out, columns[3])
    assert out.tolist() == [9] * 8


@pytest.mark.parametrize("pointer", [-(2**62), -2, 16, 2**62, 2**63 - 1])
def test_broken_pointers_raise_and_touch_no_memory(prefix, mmap, tmp_path, pointer):
    content = bytearray((tmp_path / "corpus.idx").read_bytes())
    content[34 + 20 : 34 + 28] = np.int64(pointer).tobytes()
    (tmp_path / "corpus.idx").write_bytes(content)
    dataset = IndexedDataset(prefix, mmap=mmap)
    text = f"corpus.idx: sequence 0 of 3 uint16 tokens is said to begin at byte {pointer}"
    with pytest.raises(SequencePointerError, match=text):
        dataset.read_into(ints(0), ints(0), ints(3), np.zeros(3, np.int64), ints(0))


def test_spans_in_the_middle_of_a_token(prefix, mmap, tmp_path):
    content = bytearray((tmp_path / "corpus.idx").read_bytes())
    content[34 + 20 : 34 + 28] = np.int64(1).tobytes()
    (tmp_path / "corpus.idx").write_bytes(content)
    dataset = IndexedDataset(prefix, mmap=mmap)
    for dtype in (np.uint16, np.int64):
        out = np.zeros(3, dtype)
        dataset.read_into(ints(0, 2), ints(0, 0), ints(2, 1), out, ints(0, 2))
        assert out.tolist() == [2 << 8, 3 << 8, 4]


def test_no_spans(write, mmap):
    nothing = ints()
    out = np.zeros(2, np.int64)
    for documents in ([], [[[1]]]):
        dataset = IndexedDataset(write(documents), mmap=mmap)
        dataset.read_into(nothing, nothing, nothing, out, nothing)
    assert out.tolist() == [0, 0]


def test_a_file_without_sequences(write, mmap):
    dataset = IndexedDataset(write([]), mmap=mmap)
    with pytest.raises(IndexError, match="has no sequences, but 0 was asked for"):
        dataset.read_into(ints(0), ints(0), ints(0), np.zeros(1, np.int64), ints(0))


def test_outputs_that_are_not_contiguous_or_not_writable(dataset):
    out = np.zeros(6, np.uint16)
    dataset.read_into(ints(0), ints(0), ints(3), out[::2], ints(0))
    assert out.tolist() == [1, 0, 2, 0, 3, 0]
    out.flags.writeable = False
    with pytest.raises(ValueError, match="the output array is read-only"):
        dataset.read_into(ints(0), ints(0), ints(3), out, ints(0))


def test_read_only_arguments_are_fine(dataset):
    columns = [ints(0), ints(0), ints(3), ints(0)]
    for column in columns:
        column.flags.writeable = False
    out = np.zeros(3, np.int64)
    dataset.read_into(*columns[:3], out, columns[3])
    assert out.tolist() == [1, 2, 3]
