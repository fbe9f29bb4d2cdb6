"""Single samples: limits, padding, and what of the loss remains."""

import numpy as np
import pytest

from coredata.varlen import (
    LossFacts,
    Tokenized,
    fixed_sample,
    limit_tokens,
    mock_fixed_sample,
    mock_packed_sample,
    pack_samples,
    single_sample,
)

EOD, PAD = 50, 51


def counting(length):
    ids = np.arange(1, length + 1, dtype=np.int64)
    return Tokenized(ids, ids)


@pytest.mark.parametrize(
    ("length", "ids", "kept"),
    [
        (0, [EOD, EOD], 0),
        (1, [1, EOD], 0),
        (3, [1, 2, 3, EOD], 2),
        (5, [1, 2, 3, 4, 5, EOD], 4),
        (6, [1, 2, 3, 4, EOD], 3),
    ],
)
def test_tokens_are_limited_and_end(length, ids, kept):
    limited, facts = limit_tokens(counting(length), 4, EOD)
    np.testing.assert_array_equal(limited.ids, ids)
    np.testing.assert_array_equal(limited.targets, ids)
    assert facts == LossFacts(max(length - 1, 0), kept)


def test_an_end_token_that_is_there_is_not_put_twice():
    ids = np.array([1, EOD, 3, 4, EOD, 6, 7])
    limited, facts = limit_tokens(Tokenized(ids[:5], np.full(5, -100)), 4, EOD)
    np.testing.assert_array_equal(limited.ids, ids[:5])
    assert (limited.targets == -100).all()
    assert facts == LossFacts(0, 0)
    cut, facts = limit_tokens(Tokenized(ids, ids), 4, EOD)
    np.testing.assert_array_equal(cut.ids, ids[:5])
    assert facts == LossFacts(6, 4)


def test_the_row_is_left_alone():
    row = counting(9)
    limit_tokens(row, 4, EOD)
    np.testing.assert_array_equal(row.ids, range(1, 10))


def test_a_prompt_longer_than_the_limit_keeps_none_of_its_answer():
    ids = np.arange(10)
    targets = np.where(ids < 8, -100, ids)
    limited, facts = limit_tokens(Tokenized(ids, targets), 6, EOD)
    assert facts == LossFacts(2, 0)
    assert limited.targets.tolist() == [-100] * 6 + [EOD]


def test_padding_bears_no_loss_even_if_the_end_token_pads():
    ids = np.array([1, EOD, 3, EOD])
    sample = single_sample(Tokenized(ids, ids), 4, EOD)
    np.testing.assert_array_equal(sample["tokens"], [1, EOD, 3, EOD])
    np.testing.assert_array_equal(sample["loss_mask"], [1, 1, 1, 0])
    assert (sample["original_seq_len"][0], sample["padded_seq_len"][0]) == (3, 4)
    packed = pack_samples([sample, sample])
    np.testing.assert_array_equal(packed["cu_seqlens"], [0, 3, 6])
    np.testing.assert_array_equal(packed["cu_seqlens_padded"], [0, 4, 8])


def test_a_fixed_sample_has_the_length_asked_for():
    limited, _ = limit_tokens(counting(5), 4, EOD)
    assert len(limited.ids) == 6
    sample = fixed_sample(limited, 4, PAD)
    assert {field: values.shape for field, values in sample.items()} == dict.fromkeys(sample, (4,))
    assert not sample["padding_mask"].any()
    short = fixed_sample(counting(2), 4, PAD)
    np.testing.assert_array_equal(short["padding_mask"], [False, True, True, True])
    np.testing.assert_array_equal(short["labels"], [2, PAD, PAD, PAD])


def test_made_up_packs_of_a_fixed_length():
    tokens = np.arange(1, 3)
    sample = mock_fixed_sample(tokens, 4, EOD, PAD)
    np.testing.assert_array_equal(sample["tokens"], [1, 2, EOD, PAD])
    np.testing.assert_array_equal(sample["loss_mask"], [1, 1, 0, 0])
    assert sorted(sample) == ["labels", "loss_mask", "position_ids", "tokens"]
    longer = mock_fixed_sample(np.arange(1, 9), 4, EOD, PAD)
    np.testing.assert_array_equal(longer["labels"], [2, 3, EOD, PAD])
    packed = mock_packed_sample(np.arange(1, 9), 4, 3, EOD, PAD)
    np.testing.assert_array_equal(packed["cu_seqlens"], [0, 6])
