import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.indices import IndexedOrder, build_gpt_indices, tokens_per_epoch


def build(lengths, num_samples, sequence_length, seed=1, **options):
    """Indices over all documents of a file with these lengths."""
    lengths = np.array(lengths, np.int32)
    return build_gpt_indices(
        lengths, np.arange(lengths.size), num_samples, sequence_length, seed, **options
    )


def tokens_of(indices, lengths, sequence_length, extra=True):
    """Per sample, the (document, offset) pairs of its tokens."""
    order = IndexedOrder(indices, np.array(lengths, np.int32), sequence_length, extra)
    spans = order.spans(np.arange(len(order)))
    pairs = [
        [(document, offset + i) for i in range(length)]
        for document, offset, length in zip(
            spans.sequences.tolist(), spans.offsets.tolist(), spans.lengths.tolist(), strict=True
        )
    ]
    splits = spans.row_splits.tolist()
    return [list(itertools.chain(*pairs[a:b])) for a, b in itertools.pairwise(splits)]


def test_five_short_documents_ten_samples():
    # 10 samples of 8 tokens and the extra one: 81 of 15 tokens an epoch, 6 epochs.
    indices = build([3] * 5, 10, 8)
    assert indices.document_index.size == 30
    assert indices.shuffle_index.size == 11
    for sample in tokens_of(indices, [3] * 5, 8):
        assert len(sample) == 9


@pytest.mark.parametrize(
    ("lengths", "one_epoch", "epochs_for_three"),
    [([8], 0, 4), ([9], 1, 3), ([2], 0, 13), ([1, 1], 0, 13)],
)
def test_fewer_tokens_than_a_sample(lengths, one_epoch, epochs_for_three):
    assert build(lengths, None, 8).shuffle_index.size == one_epoch
    indices = build(lengths, 3, 8)
    assert indices.document_index.size == epochs_for_three * len(lengths)
    assert all(len(sample) == 9 for sample in tokens_of(indices, lengths, 8))


@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 0]])
def test_no_tokens(lengths):
    indices = build(lengths, None, 8)
    assert indices.sample_index.tolist() == [[0, 0]]
    assert indices.shuffle_index.size == 0
    assert indices.document_index.size == len(lengths)
    assert build(lengths, 0, 8).shuffle_index.size == 0
    with pytest.raises(
        ValueError,
        match=rf"5 samples of 8 tokens were asked of valid split of data/corpus "
        rf"\({len(lengths)} documents\), which has 0 tokens.*larger share",
    ):
        build(lengths, 5, 8, source="valid split of data/corpus")


@pytest.mark.parametrize("lengths", [[1] * 7, [2] * 7, [1, 2, 1, 0, 2]])
def test_tiny_documents_for_many_epochs(lengths):
    indices = build(lengths, 500, 16)
    epochs = indices.document_index.size // len(lengths)
    assert epochs == -(-(500 * 16 + 1) // sum(lengths))
    counts = np.bincount(indices.document_index, minlength=len(lengths))
    assert counts.tolist() == [epochs] * len(lengths)
    assert all(len(sample) == 17 for sample in tokens_of(indices, lengths, 16))


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=20),
    st.integers(1, 12),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_one_epoch_has_every_token_once(lengths, sequence_length, extra, drop_last, seed):
    indices = build(
        lengths,
        None,
        sequence_length,
        seed,
        add_extra_token=extra,
        drop_last_partial_sequence=drop_last,
    )
    samples = tokens_of(indices, lengths, sequence_length, extra)
    stream = [(d, i) for d in indices.document_index.tolist() for i in range(lengths[d])]
    in_order = [samples[k] for k in np.argsort(indices.shuffle_index)]
    for j, sample in enumerate(in_order):
        start = j * sequence_length
        assert sample == stream[start : start + sequence_length + extra]
    if not drop_last and samples:
        assert in_order[-1][-1] == stream[-1]


def test_a_separate_final_epoch_stays_at_the_end():
    indices = build([9] * 100, 150, 8)
    before = 112
    assert sorted(indices.shuffle_index[:before].tolist()) == list(range(before))
    assert sorted(indices.document_index[100:].tolist()) == list(range(100))
    joint = build([9] * 100, 150, 8, separate_final_epoch_threshold=0)
    assert sorted(joint.shuffle_index[:before].tolist()) != list(range(before))


def test_documents_of_a_split_only():
    lengths = np.array([5, 50, 7, 9], np.int32)
    indices = build_gpt_indices(lengths, np.array([2, 3], np.int32), 4, 4, 3)
    assert set(indices.document_index.tolist()) == {2, 3}


@pytest.mark.parametrize("document", [-1, 4])
def test_a_document_that_is_not_there(document):
    with pytest.raises(IndexError, match=rf"no document {document} in a file of 4 sequences"):
        build_gpt_indices(np.ones(4, np.int32), np.array([0, document]), 1, 4, 3)


def test_tokens_are_summed_in_64_bits():
    lengths = np.full(3, 2**31 - 1, np.int32)
    assert tokens_per_epoch(lengths, np.arange(3)) == 3 * (2**31 - 1)


def test_other_values_are_refused():
    with pytest.raises(ValueError, match=r"random_seed: -1 is outside"):
        build([9], 1, 8, seed=-1)
    with pytest.raises(ValueError, match=r"sequence_length: 0 is below 1"):
        build([9], 1, 0)
    with pytest.raises(ValueError, match=r"num_samples: -3 is negative"):
        build([9], -3, 8)
