"""What a mapped file hands to compiled code."""

import pickle

import numpy as np
import pytest

from coredata.formats import IndexedDataset, IndexedDatasetBuilder


@pytest.fixture
def corpus(tmp_path):
    name = str(tmp_path / "corpus")
    with IndexedDatasetBuilder(name, np.uint16) as builder:
        builder.add_documents(np.array([5, 6, 7, 8, 65535]), np.array([2, 0, 3]))
        builder.finalize()
    return name


def test_tokens_lengths_and_pointers(corpus):
    tokens, lengths, pointers = IndexedDataset(corpus).mapped_tokens("int32")
    assert tokens.tolist() == [5, 6, 7, 8, 65535]
    assert tokens.dtype == np.uint16
    assert not tokens.flags.writeable
    assert lengths.tolist() == [2, 0, 3]
    assert pointers.tolist() == [0, 4, 4]


def test_none_where_tokens_have_to_be_converted_or_read(corpus):
    dataset = IndexedDataset(corpus)
    assert dataset.mapped_tokens("int16") is None
    assert dataset.mapped_tokens("int64") is not None
    assert dataset.mapped_tokens("int16") is None
    assert IndexedDataset(corpus, mmap=False).mapped_tokens("int64") is None


def test_closing_and_pickling_forget_the_mapping(corpus):
    dataset = IndexedDataset(corpus)
    before = dataset.mapped_tokens("int64")
    assert dataset.mapped_tokens("int64") is before
    dataset.close()
    assert dataset.mapped_tokens("int64") is not before
    assert pickle.loads(pickle.dumps(dataset)).mapped_tokens("int64") is not before
