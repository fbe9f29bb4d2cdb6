import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.indices import GPTIndices, IndexedOrder, SampleOrder, build_gpt_indices

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=20)


def order_over(lengths, num_samples=None, sequence_length=4, extra=True, seed=5):
    lengths = np.array(lengths, np.int32)
    indices = build_gpt_indices(
        lengths,
        np.arange(lengths.size),
        num_samples,
        sequence_length,
        seed,
        add_extra_token=extra,
        drop_last_partial_sequence=False,
    )
    return IndexedOrder(indices, lengths, sequence_length, extra)


def spans_of(order, sample):
    """The spans of one sample again, in plain Python, as the reference reads them."""
    indices, extra = order.indices, int(order.add_extra_token)
    row = int(indices.shuffle_index[sample])
    first, first_offset = indices.sample_index[row].tolist()
    last, last_offset = indices.sample_index[row + 1].tolist()
    spans = []
    for position in range(first, last + 1):
        document = int(indices.document_index[position])
        begin = first_offset if position == first else 0
        end = last_offset + extra if position == last else int(order.sequence_lengths[document])
        if end > begin:
            spans.append((document, begin, end - begin))
    return spans


def rows(spans):
    triples = list(
        zip(spans.sequences.tolist(), spans.offsets.tolist(), spans.lengths.tolist(), strict=True)
    )
    splits = spans.row_splits.tolist()
    return [triples[a:b] for a, b in itertools.pairwise(splits)]


@given(st.data(), LENGTHS, st.integers(1, 12), st.booleans())
@settings(deadline=None, max_examples=150)
def test_spans_match_the_plain_reading(data, lengths, sequence_length, extra):
    num_samples = data.draw(st.none() | st.integers(0, 30)) if sum(lengths) else None
    order = order_over(lengths, num_samples, sequence_length, extra)
    some = st.lists(st.integers(0, len(order) - 1), max_size=20) if len(order) else st.just([])
    samples = data.draw(some)
    spans = order.spans(np.array(samples, np.int64))
    assert rows(spans) == [spans_of(order, sample) for sample in samples]
    for array in (spans.sequences, spans.offsets, spans.lengths, spans.row_splits):
        assert array.dtype == np.int64


def test_it_is_an_order():
    order = order_over([5, 6, 7])
    assert isinstance(order, SampleOrder)
    assert len(order) == 5


def test_empty_documents_leave_no_span():
    order = order_over([0, 3, 0, 0, 4, 0, 2, 0], sequence_length=4)
    spans = order.spans(np.arange(len(order)))
    assert spans.lengths.min() > 0
    assert spans.row_splits[-1] == spans.lengths.size
    assert spans.lengths.sum() == 9 + len(order) - 1


def test_a_partial_sample_that_ends_in_an_empty_document():
    lengths = np.array([6, 0], np.int32)
    indices = GPTIndices(
        np.array([0, 1], np.int32),
        np.array([[0, 0], [0, 4], [1, -1]], np.int32),
        np.array([0, 1], np.uint32),
    )
    order = IndexedOrder(indices, lengths, 4)
    assert rows(order.spans(np.array([0, 1]))) == [[(0, 0, 5)], [(0, 4, 2)]]


def test_no_samples_asked():
    spans = order_over([5, 6]).spans(np.zeros(0, np.int64))
    assert spans.row_splits.tolist() == [0]
    assert spans.lengths.size == 0


def test_mapped_read_only_arrays(tmp_path):
    order = order_over([5, 0, 6, 7], 12)
    mapped = {}
    for name in ("document_index", "sample_index", "shuffle_index"):
        np.save(tmp_path / f"{name}.npy", getattr(order.indices, name))
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    lengths = np.frombuffer(b"\0\0" + order.sequence_lengths.tobytes(), np.int32, 4, 2)
    again = IndexedOrder(GPTIndices(**mapped), lengths, 4)
    samples = np.arange(len(order))
    assert rows(again.spans(samples)) == rows(order.spans(samples))


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_wide_index_arrays(width):
    order = order_over([5, 0, 6, 7], 12)
    wide = GPTIndices(
        order.indices.document_index.astype(width),
        order.indices.sample_index.astype(np.int64),
        order.indices.shuffle_index.astype(np.int64),
    )
    again = IndexedOrder(wide, order.sequence_lengths, 4)
    samples = np.arange(len(order))
    assert rows(again.spans(samples)) == rows(order.spans(samples))


@pytest.mark.parametrize("sample", [-1, 5, 2**40, -(2**63)])
def test_a_sample_that_is_not_there(sample):
    with pytest.raises(IndexError, match=rf"sample {sample} was asked of 5 samples; .* 0 … 4"):
        order_over([5, 6, 7]).spans(np.array([0, sample]))


# One good sample index: documents of 5, 6, 7 tokens, S = 4.
GOOD = {
    "document_index": [0, 1, 2],
    "sample_index": [[0, 0], [0, 4], [1, 3], [2, 1], [2, 5]],
    "shuffle_index": [0, 1, 2, 3],
}


def damaged_order(name, at, value):
    arrays = {
        "document_index": np.array(GOOD["document_index"], np.int32),
        "sample_index": np.array(GOOD["sample_index"], np.int32),
        "shuffle_index": np.array(GOOD["shuffle_index"], np.int64),
    }
    arrays[name][at] = value
    return IndexedOrder(GPTIndices(**arrays), np.array([5, 6, 7], np.int32), 4)


def test_the_undamaged_order():
    order = damaged_order("shuffle_index", 0, 0)
    assert rows(order.spans(np.arange(4))) == [
        [(0, 0, 5)],
        [(0, 4, 1), (1, 0, 4)],
        [(1, 3, 3), (2, 0, 2)],
        [(2, 1, 5)],
    ]


@pytest.mark.parametrize(
    ("name", "at", "value", "problem"),
    [
        ("shuffle_index", 1, 4, "the shuffle index points outside the sample index"),
        ("shuffle_index", 1, -1, "the shuffle index points outside the sample index"),
        ("shuffle_index", 1, 2**62, "the shuffle index points outside the sample index"),
        ("sample_index", (1, 0), -1, "the sample index points outside the document index"),
        ("sample_index", (1, 0), 2, "the sample index points outside the document index"),
        ("sample_index", (2, 0), 3, "the sample index points outside the document index"),
        ("sample_index", (2, 0), 2**31 - 1, "the sample index points outside the document index"),
        ("sample_index", (1, 1), -1, "the sample index points outside a document"),
        ("sample_index", (1, 1), 6, "the sample index points outside a document"),
        ("sample_index", (2, 1), 6, "the sample index points outside a document"),
        ("sample_index", (2, 1), -2, "the sample index points outside a document"),
        ("sample_index", (1, 1), 0, "it has more than its 4 tokens"),
        ("sample_index", (2, 1), 5, "it has more than its 4 tokens"),
        ("document_index", 1, 3, "the document index names a sequence that the file does not"),
        ("document_index", 1, -1, "the document index names a sequence that the file does not"),
        ("document_index", 0, 2**31 - 1, "the document index names a sequence that the file"),
    ],
)
def test_damaged_arrays_are_an_error(name, at, value, problem):
    with pytest.raises(ValueError, match=rf"sample 1 \(row .*\): {problem}.*build them again"):
        damaged_order(name, at, value).spans(np.array([1]))


@given(
    st.sampled_from(["document_index", "sample_index", "shuffle_index"]),
    st.integers(0, 3),
    st.integers(0, 1),
    st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 9),
)
@settings(deadline=None, max_examples=300)
def test_any_damage_is_an_error_or_stays_within_the_file(name, at, column, value):
    if name == "document_index":
        order = damaged_order(name, at % 3, value)
    else:
        order = damaged_order(name, (at, column) if name == "sample_index" else at, value)
    try:
        spans = order.spans(np.arange(4))
    except ValueError:
        return
    ends = spans.offsets + spans.lengths
    assert (spans.offsets >= 0).all()
    assert (spans.lengths > 0).all()
    assert (ends <= np.array([5, 6, 7])[spans.sequences]).all()
    for row in rows(spans):
        assert sum(length for _, _, length in row) <= 5
