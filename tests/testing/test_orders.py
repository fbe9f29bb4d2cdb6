from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.indices import IndexedOrder, SampleSpans, build_gpt_indices, number_of_epochs
from coredata.testing import (
    ArrayDataset,
    assert_epoch_exact,
    assert_permutation,
    assert_tokens_exact,
    flattened,
)
from coredata.testing.strategies import corpora, gpt_settings


def test_permutations():
    assert_permutation(np.array([2, 0, 1]))
    assert_permutation(np.empty(0, np.int64))
    assert_permutation(np.random.default_rng(0).permutation(1000).astype(np.uint32), 1000)


@pytest.mark.parametrize(
    ("numbers", "n", "match"),
    [
        ([0, 1, 1], None, "a permutation of 0 … 2: 1 comes 2 times, 2 does not come"),
        ([0, 1, 3], None, "a permutation of 0 … 2: it holds 3"),
        ([0, -1, 1], None, "it holds -1"),
        ([0, 1, 2], 4, "a permutation of 4: it holds 3 numbers"),
    ],
)
def test_what_is_no_permutation(numbers, n, match):
    with pytest.raises(AssertionError, match=match):
        assert_permutation(np.array(numbers), n)


def order_of(corpus, wanted):
    _, lengths = flattened(corpus)
    documents = np.arange(len(lengths), dtype=np.int32)
    indices = build_gpt_indices(
        lengths,
        documents,
        wanted.num_samples,
        wanted.sequence_length,
        wanted.random_seed,
        add_extra_token=wanted.add_extra_token,
        drop_last_partial_sequence=wanted.drop_last_partial_sequence,
    )
    return lengths, IndexedOrder(indices, lengths, wanted.sequence_length, wanted.add_extra_token)


@settings(max_examples=60, deadline=None)
@given(corpus=corpora(), wanted=gpt_settings())
def test_every_order_is_exact(corpus, wanted):
    lengths, order = order_of(corpus, wanted)
    epochs = number_of_epochs(
        int(lengths.sum()), wanted.num_samples, wanted.sequence_length, wanted.add_extra_token
    )
    assert_epoch_exact(
        order,
        lengths,
        sequence_length=wanted.sequence_length,
        epochs=epochs,
        add_extra_token=wanted.add_extra_token,
    )


class Changed:
    """An order with its spans changed by a function."""

    def __init__(self, order, change):
        self.order = order
        self.change = change

    def __len__(self):
        return len(self.order)

    def spans(self, samples):
        return self.change(self.order.spans(samples))


def shifted(spans):
    offsets = spans.offsets.copy()
    offsets[3] += 1
    return replace(spans, offsets=offsets)


def repeated(spans):
    rows = spans.row_splits
    first = slice(rows[0], rows[1])
    keep = slice(rows[1], rows[-1])
    return SampleSpans(
        *(
            np.concatenate([a[first], a[first], a[keep]])
            for a in (spans.sequences, spans.offsets, spans.lengths)
        ),
        np.concatenate([rows[:1], [rows[1]], rows[1:] + rows[1]]),
    )


def longer(spans):
    lengths = spans.lengths.copy()
    lengths[0] += 1
    return replace(spans, lengths=lengths)


LENGTHS = np.array([30, 10, 25, 40, 15, 60], np.int32)


def exact_order(num_samples=None):
    documents = np.arange(6, dtype=np.int32)
    indices = build_gpt_indices(LENGTHS, documents, num_samples, 8, 1)
    return IndexedOrder(indices, LENGTHS, 8, True)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (shifted, r"token \d+ of sequence \d+ \(\d+\) comes 1 times more often than in 1 epochs"),
        (repeated, "comes 1 times more often"),
        (longer, r"sample \d+ has 10 tokens, expected 1 to 9"),
    ],
)
def test_an_order_that_is_not_exact(change, match):
    assert_epoch_exact(exact_order(), LENGTHS, sequence_length=8)
    with pytest.raises(AssertionError, match=match):
        assert_epoch_exact(Changed(exact_order(), change), LENGTHS, sequence_length=8)


def test_a_document_that_is_never_read():
    lengths = np.append(LENGTHS, np.int32(20))
    with pytest.raises(
        AssertionError, match=r"tokens are missing in 1 epochs, the first token \d+ of sequence \d"
    ):
        assert_epoch_exact(exact_order(), lengths, sequence_length=8)
    subset = np.arange(6, dtype=np.int32)
    assert_epoch_exact(exact_order(), lengths, subset, sequence_length=8)


def test_too_few_epochs_and_too_many():
    order = exact_order(40)  # 180 tokens an epoch, 40 samples of 8: two epochs
    assert_epoch_exact(order, LENGTHS, sequence_length=8, epochs=2)
    with pytest.raises(AssertionError, match="comes 1 times more often than in 1 epochs"):
        assert_epoch_exact(order, LENGTHS, sequence_length=8, epochs=1)
    with pytest.raises(AssertionError, match="tokens are missing in 3 epochs"):
        assert_epoch_exact(order, LENGTHS, sequence_length=8, epochs=3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_tokens_of_a_dataset(seed):
    tokens = np.random.default_rng(seed).integers(0, 9, 52)
    rows = tokens[:50].reshape(10, 5)
    assert_tokens_exact(ArrayDataset({"tokens": rows}), tokens)
    assert_tokens_exact(ArrayDataset({"tokens": np.concatenate([rows, rows])}), tokens, epochs=2)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (np.zeros(53, np.int64), "token 2 is read, but is not in the data"),
        (np.repeat([0, 1, 2], [10, 3, 40]), "token 1 is read 10 times, expected at most 3"),
        (np.repeat([0, 1, 2], [20, 20, 20]), "10 tokens are not read in 1 epochs, of token 0 10"),
    ],
)
def test_tokens_that_do_not_add_up(data, match):
    rows = np.repeat([0, 1, 2], [10, 10, 30]).reshape(10, 5)
    if len(data) == 60:
        rows = np.repeat([0, 1, 2], [10, 20, 20]).reshape(10, 5)
    with pytest.raises(AssertionError, match=match):
        assert_tokens_exact(ArrayDataset({"tokens": rows}), data)
