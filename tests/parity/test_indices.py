"""The reference's own index builders beside ours, on random corpora."""

import functools
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coredata.indices import (
    Split,
    build_document_index,
    build_gpt_indices,
    build_sample_index,
    build_shuffle_index,
    convert_split_vector_to_split_matrix,
    mt19937_seed,
    number_of_samples,
    parse_and_normalize_split,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from megatron.core.datasets import blended_megatron_dataset_config as reference_config
    from megatron.core.datasets import gpt_dataset, helpers
    from megatron.core.datasets.utils import Split as ReferenceSplit

SEEDS = st.integers(0, 2**32 - 1)
LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=40)
together = functools.partial(settings, deadline=None)


def same(ours, theirs):
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=50), st.integers(1, 5), SEEDS)
@together()
def test_document_and_shuffle_index(documents, epochs, seed):
    for separate in (False, True):
        ours, theirs = mt19937_seed(seed), np.random.RandomState(seed)
        documents = np.array(documents, np.int32)
        same(
            build_document_index(documents, epochs, ours, separate),
            gpt_dataset._build_document_index(documents, epochs, theirs, separate),
        )
        # The shuffle index goes on with the same generator.
        for before, samples in ((70, 70), (0, 30), (55, 101)):
            same(
                build_shuffle_index(before, samples, ours),
                gpt_dataset._build_shuffle_index(before, samples, theirs),
            )


@given(st.data(), LENGTHS, st.integers(1, 20), st.booleans(), st.booleans(), st.integers(1, 4))
@together(max_examples=200)
def test_sample_index(data, lengths, sequence_length, drop_last, extra_token, epochs):
    tokens = sum(lengths)
    assume(tokens > extra_token)
    documents = data.draw(st.permutations(list(range(len(lengths))) * epochs))
    # There the reference refuses the -1 it has just written.
    assume(drop_last or not extra_token or lengths[documents[-1]])
    lengths, documents = np.array(lengths, np.int32), np.array(documents, np.int32)
    samples = number_of_samples(epochs, tokens, sequence_length, extra_token, drop_last)
    same(
        build_sample_index(lengths, documents, sequence_length, samples, extra_token),
        helpers.build_sample_idx(
            lengths, documents, sequence_length, epochs, tokens, drop_last, extra_token
        ),
    )


def test_sample_index_in_64_bits():
    lengths, documents = np.array([5, 0, 9], np.int32), np.array([2, 0, 1, 2], np.int32)
    theirs = helpers.build_sample_idx_int64(lengths, documents, 4, 1, 23, False, 1)
    np.testing.assert_array_equal(build_sample_index(lengths, documents, 4, 6), theirs)


class ReferenceDataset(gpt_dataset.GPTDataset):
    """The reference's GPT dataset as far as it builds indices: over lengths, without files."""

    def __init__(self, lengths, indices, num_samples, split, config):
        self.dataset = Lengths(lengths)
        self.indices = indices
        self.num_samples = num_samples
        self.index_split = split
        self.config = config


class Lengths:
    def __init__(self, lengths):
        self.sequence_lengths = lengths
        self.path_prefix = "nowhere"


class Config:
    """The settings that the reference's index building reads."""

    def __init__(self, sequence_length, random_seed, extra_token, drop_last):
        self.sequence_length = sequence_length
        self.random_seed = random_seed
        self.add_extra_token_to_sequence = extra_token
        self.drop_last_partial_validation_sequence = drop_last
        self.defer_npy_index_mmap = False
        self.fast_cache_load = False
        self.path_to_cache = None
        self.mock = True


@given(
    st.data(),
    LENGTHS,
    st.integers(1, 16),
    st.none() | st.integers(1, 300),
    st.booleans(),
    st.booleans(),
    SEEDS,
)
@together(max_examples=150)
def test_all_three_indices(data, lengths, sequence_length, num_samples, extra, drop_last, seed):
    documents = data.draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, unique=True))
    lengths, documents = np.array(lengths, np.int32), np.array(documents, np.int32)
    # The reference does not end without tokens, and refuses the -1 of an empty last document.
    assume(lengths[documents].sum() > extra)
    assume(drop_last or lengths.min() > 0)
    config = Config(sequence_length, seed, extra, drop_last)
    theirs = ReferenceDataset(lengths, documents, num_samples, ReferenceSplit.valid, config)
    ours = build_gpt_indices(
        lengths,
        documents,
        num_samples,
        sequence_length,
        seed,
        add_extra_token=extra,
        drop_last_partial_sequence=drop_last,
    )
    expected = theirs._build_document_sample_shuffle_indices()
    names = ("document_index", "sample_index", "shuffle_index")
    for name, array in zip(names, expected, strict=True):
        same(getattr(ours, name), array)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=3).filter(any), st.data())
@together()
def test_splits(shares, data):
    text = data.draw(st.sampled_from([",", ", ", "/", " "])).join(map(str, shares))
    other = data.draw(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any))
    ours, theirs = parse_and_normalize_split(text), reference_config.parse_and_normalize_split(text)
    assert ours == theirs
    mine, reference = (
        convert_split_vector_to_split_matrix,
        reference_config.convert_split_vector_to_split_matrix,
    )
    assert mine(ours) == reference(theirs)
    total = sum(other)
    vector = [share / total for share in other]
    assert mine(ours, vector) == reference(theirs, vector)


def test_split_names():
    assert [(split.name, split.value) for split in Split] == [
        (split.name, split.value) for split in ReferenceSplit
    ]


@pytest.mark.parametrize(("split", "misread"), [("-1,1,0", [0.5, 0.5, 0.0])])
def test_where_splits_differ_on_purpose(split, misread):
    assert reference_config.parse_and_normalize_split(split) == misread
    with pytest.raises(ValueError, match="is negative"):
        parse_and_normalize_split(split)
