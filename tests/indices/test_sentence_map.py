"""Sentence maps against a plain twin, and what they refuse."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.indices import (
    SentenceSettings,
    build_sentence_map,
    mt19937_64_seed,
    qualifying_documents,
    sentence_map_dtype,
    shuffle_rows,
)


def plain_map(documents, num_samples, options):
    """The definition, written for reading; documents are lists of sentence lengths."""
    random = np.random.RandomState(options.random_seed)
    probability = options.short_sequence_probability
    ratio = 0 if probability == 0 else math.floor(1 / probability + 0.5)

    def target():
        if ratio == 0:
            return options.max_length
        number = int(random.randint(0, 2**32, dtype=np.uint32))
        return options.max_length if number % ratio else 2 + number % (options.max_length - 1)

    rows, epoch = [], 0
    while (epoch < 1) if num_samples is None else (len(rows) < num_samples):
        first = 0
        for lengths in documents:
            begin, wanted = first, None
            few = len(lengths) < options.min_sentences
            if not few and not (len(lengths) > 1 and max(lengths) > 512):
                wanted = target()
            for number, _ in enumerate(lengths, start=1):
                if wanted is None:
                    break
                taken = lengths[begin - first : number]
                left = len(lengths) - number
                enough = sum(taken) >= wanted and len(taken) >= options.min_sentences
                if left == 0 or (enough and left > 1):
                    rows.append((begin, first + number, wanted))
                    begin, wanted = first + number, target()
            first += len(lengths)
        epoch += 1
    rows = np.array(rows, np.uint32).reshape(-1, 3)
    shuffle_rows(rows, mt19937_64_seed(options.random_seed + 1))
    return rows


def arrays(documents):
    counts = [len(lengths) for lengths in documents]
    boundaries = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return boundaries, np.array([n for lengths in documents for n in lengths], np.int32)


def build(documents, num_samples, options, exposed=None, **named):
    exposed = np.arange(len(documents)) if exposed is None else np.asarray(exposed)
    return build_sentence_map(*arrays(documents), exposed, num_samples, options, **named)


def a_map(**changes):
    values = {"max_length": 30, "short_sequence_probability": 0.3, "min_sentences": 1}
    return SentenceSettings(**{**values, "random_seed": 5, **changes})


LENGTHS = st.lists(st.integers(0, 40) | st.sampled_from([512, 513]), max_size=9)
SETTINGS = st.builds(
    SentenceSettings,
    max_length=st.integers(2, 60),
    short_sequence_probability=st.sampled_from([0, 0.1, 0.15, 0.4, 1.0]) | st.floats(1e-6, 1),
    min_sentences=st.integers(1, 3),
    random_seed=st.integers(0, 2**32 - 1),
)


@given(st.lists(LENGTHS, min_size=1, max_size=12), st.none() | st.integers(0, 90), SETTINGS)
@settings(max_examples=200)
def test_maps_match_the_plain_twin(documents, num_samples, options):
    documents = [*documents, [3] * options.min_sentences]
    found = build(documents, num_samples, options)
    assert found.dtype == np.uint32
    np.testing.assert_array_equal(found, plain_map(documents, num_samples, options))


def test_some_documents_of_a_file():
    documents = [[4, 5, 6], [7], [8, 9, 10, 11], [12, 13]]
    found = build(documents, None, a_map(), exposed=[1, 2])
    assert sorted(map(tuple, found[:, :2].tolist()))[0][0] == 3
    assert found[:, 1].max() == 8
    covered = sorted(s for first, last, _ in found.tolist() for s in range(first, last))
    assert covered == [3, 4, 5, 6, 7]


def test_num_samples_none_is_one_epoch_and_zero_is_none():
    documents = [[5] * 10] * 4
    one = build(documents, None, a_map())
    assert (one[:, 1].astype(int) - one[:, 0]).sum() == 40
    assert build(documents, 0, a_map()).shape == (0, 3)
    assert len(build(documents, len(one) + 1, a_map())) > len(one)


def test_many_more_epochs_than_documents():
    found = build([[7, 7]], 1000, a_map(short_sequence_probability=0))
    np.testing.assert_array_equal(found, np.tile(np.array([0, 2, 30], np.uint32), (1000, 1)))


def test_64_bit_rows_hold_the_same():
    assert sentence_map_dtype(2**32 - 1) == np.uint32
    assert sentence_map_dtype(2**32) == np.uint64


def test_a_wide_map(monkeypatch):
    from coredata.indices import sentence_map

    documents, options = [[4, 5, 6], [7, 2], [8, 9, 10, 11]], a_map()
    narrow = build(documents, 50, options)
    monkeypatch.setattr(sentence_map, "sentence_map_dtype", lambda _: np.dtype(np.uint64))
    wide = build(documents, 50, options)
    assert wide.dtype == np.uint64
    np.testing.assert_array_equal(wide, narrow)


def test_counts_of_documents():
    documents = [[], [4], [4, 513], [513], [4, 4], [4, 4, 4], []]
    kept, counts = qualifying_documents(*arrays(documents), np.arange(7, dtype=np.int32), 2)
    assert kept.tolist() == [4, 5]
    assert (counts.documents, counts.empty, counts.few, counts.long) == (7, 2, 2, 1)
    assert (counts.qualifying, counts.sentences, counts.single) == (2, 5, 2)
    kept, counts = qualifying_documents(*arrays(documents), np.arange(7, dtype=np.int32), 1)
    assert kept.tolist() == [1, 3, 4, 5]
    assert counts.few == 0


def test_documents_that_never_qualify_are_an_error_with_counts():
    documents = [[], [4], [4, 513], []]
    text = (
        "num_samples: 10 samples were asked of the train split of x, but no document can give "
        "one: of 4 documents 2 are empty, 1 have too few sentences, 1 have a sentence of more "
        "than 512 tokens, 0 qualify. A sample needs a document of at least 2 sentences. Give this "
        "split more documents, or ask it for 0 samples"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        build(documents, 10, a_map(min_sentences=2), source="the train split of x")
    with pytest.raises(ValueError, match=r"of at least 1 sentence\. Give"):
        build([[], []], 10, a_map())
    assert build(documents, None, a_map(min_sentences=2)).shape == (0, 3)
    assert build(documents, 0, a_map(min_sentences=2)).shape == (0, 3)


def test_a_file_that_was_not_split_into_sentences():
    with pytest.raises(ValueError, match=r"single sequence.*--split-sentences"):
        build([[40], [50]], 10, a_map(min_sentences=2))


def test_documents_that_do_not_exist():
    for wrong in (-1, 2):
        with pytest.raises(IndexError, match=rf"no document {wrong} in a file of 2; .* 0 … 1"):
            build([[4], [5]], 10, a_map(), exposed=[0, wrong])


def test_damaged_files():
    _, lengths = arrays([[4, 4], [5]])
    for boundaries in ([0, 3, 2], [0, 2, 4], [-1, 2, 3]):
        with pytest.raises(ValueError, match=r"document_indices: document \d is said .* damaged"):
            build_sentence_map(np.array(boundaries), lengths, np.arange(2), 10, a_map())
    with pytest.raises(ValueError, match="damaged"):
        build([[4, -4], [5]], 10, a_map())


def test_settings_out_of_range():
    for changes, text in (
        ({"max_length": 1}, "max_length: 1 tokens; need at least 2"),
        ({"short_sequence_probability": 1.1}, "1.1 is no probability above .*; 0.1 would do"),
        ({"short_sequence_probability": 1e-10}, "1e-10 is no probability above"),
        ({"min_sentences": 0}, "min_sentences: 0; need at least 1"),
    ):
        with pytest.raises(ValueError, match=text):
            a_map(**changes)
    with pytest.raises(ValueError, match=r"num_samples: -1 is negative\. Use None"):
        build([[4]], -1, a_map())
    with pytest.raises(ValueError, match="random_seed: -1 is outside"):
        build([[4]], 1, a_map(random_seed=-1))


def test_arrays_that_are_read_only_or_strided():
    documents = [[4, 5, 6], [7, 2], [8, 9, 10, 11]]
    boundaries, lengths = arrays(documents)
    expected = build(documents, 50, a_map())
    strided = np.repeat(lengths, 2)[::2]
    for array in (boundaries, strided):
        array.flags.writeable = False
    found = build_sentence_map(boundaries, strided, np.arange(3, dtype=np.int32), 50, a_map())
    np.testing.assert_array_equal(found, expected)
