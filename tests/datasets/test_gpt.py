"""GPT datasets: hard cases, errors, identity, other processes."""

import numpy as np
import pytest

from coredata.datasets import (
    PADDING,
    ArraySource,
    Dataset,
    GPTDataset,
    GPTDatasetConfig,
    MockGPTDataset,
)
from coredata.indices import Split
from coredata.text import ByteTokenizer

EOD, PAD = 256, 257


def config(**options):
    return GPTDatasetConfig(
        **{
            "random_seed": 1234,
            "sequence_length": 8,
            "blend": (["corpus"], None),
            "split": "1",
            "tokenizer": ByteTokenizer(),
            **options,
        }
    )


def dataset(documents, num_samples=None, split=Split.train, **options):
    """`documents`: lists of tokens."""
    lengths = np.array([len(document) for document in documents], np.int32)
    flat = np.array([token for document in documents for token in document], np.int64)
    return GPTDataset(
        ArraySource(flat, lengths),
        None,
        np.arange(len(documents), dtype=np.int32),
        num_samples,
        split,
        config(**options),
    )


def test_it_is_a_dataset():
    assert isinstance(dataset([range(20)]), Dataset)


@pytest.mark.parametrize(("tokens", "samples"), [(0, 0), (2, 0), (8, 0), (9, 1), (16, 1), (17, 2)])
def test_one_epoch_of_few_tokens(tokens, samples):
    assert len(dataset([range(tokens)])) == samples


@pytest.mark.parametrize(("tokens", "samples"), [(0, 0), (1, 1), (8, 1), (9, 2)])
def test_one_epoch_without_extra_token_keeping_the_last(tokens, samples):
    one = dataset(
        [range(tokens)],
        split=Split.valid,
        add_extra_token_to_sequence=False,
        drop_last_partial_validation_sequence=False,
    )
    assert len(one) == samples
    if samples:
        real = one.get_batch(np.arange(samples))["loss_mask"].sum()
        assert real == tokens - tokens // 8 - (tokens % 8 > 0)


@pytest.mark.parametrize("tokens", [1, 2, 8, 9])
def test_few_tokens_are_repeated_for_the_samples_asked(tokens):
    one = dataset([list(range(1, tokens + 1))], num_samples=10)
    assert len(one) >= 10
    batch = one.get_batch(np.arange(len(one)))
    np.testing.assert_array_equal(batch["labels"], batch["tokens"] % tokens + 1)


def test_five_documents_of_three_tokens_ten_samples():
    documents = [[10 * d + 1, 10 * d + 2, 10 * d + 3] for d in range(5)]
    one = dataset(documents, num_samples=10)
    assert len(one) == 11
    flat = np.concatenate([documents[d] for d in one.document_index])
    for k, row in enumerate(one.shuffle_index.astype(np.int64)):
        np.testing.assert_array_equal(one[k]["tokens"], flat[8 * row : 8 * row + 8])
        np.testing.assert_array_equal(one[k]["labels"], flat[8 * row + 1 : 8 * row + 9])


def test_documents_of_one_and_two_tokens_for_many_epochs():
    one = dataset([[1], [2, 3], [4]], num_samples=500, inter_document_masking=True)
    batch = one.get_batch(np.arange(500))
    assert set(np.unique(batch["tokens"])) == {1, 2, 3, 4}
    assert batch["max_seqlen"].max() <= 2
    after = batch["labels"][batch["tokens"] == 2]
    assert (after == 3).all()


def test_no_tokens_for_the_samples_asked():
    with pytest.raises(ValueError, match=r"3 samples .* the train split of unnamed data"):
        dataset([[], []], num_samples=3)


def test_no_samples_to_give():
    one = dataset([range(5)])
    with pytest.raises(IndexError, match="the train split of unnamed data, which has no samples"):
        one[0]
    with pytest.raises(IndexError, match="has no samples"):
        one[None]
    assert one.get_batch([])["tokens"].shape == (0, 8)


def padded_first(**options):
    """The first sample read is the short last one of the split; others are full."""
    for seed in range(100):
        one = dataset(
            [range(1, 30)],
            split=Split.valid,
            drop_last_partial_validation_sequence=False,
            random_seed=seed,
            create_attention_mask=True,
            **options,
        )
        if one.shuffle_index[0] == 3:
            return one
    raise AssertionError("no seed puts the last sample first")


def test_masks_of_a_padded_sample_do_not_reach_the_next():
    one = padded_first()
    short, full = one[0], one[1]
    assert short["loss_mask"].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert full["loss_mask"].tolist() == [1] * 8
    assert short["tokens"].tolist() == [25, 26, 27, 28, 29, 0, 0, 0]
    assert short["labels"].tolist() == [26, 27, 28, 29, 0, 0, 0, 0]


def test_no_field_is_shared_between_samples():
    one = padded_first()
    expected = {name: values.copy() for name, values in one[1].items()}
    samples = [one[0], one[None], *one.__getitems__([2, -1]), one.get_batch([0, 2])]
    for sample in samples:
        for values in sample.values():
            values[...] = 0
    for name, values in one[1].items():
        np.testing.assert_array_equal(values, expected[name])


def test_pad_that_is_eod_does_not_mask_ends():
    documents = [[1, 2, EOD], [3, EOD], [4, 5, 6, 7, EOD]]
    with pytest.warns(UserWarning, match="-1 is used"):
        one = dataset(documents, 1, tokenizer=ByteTokenizer(pad=EOD))
    sample = one[0]
    assert (sample["tokens"] == EOD).any()
    assert sample["loss_mask"].tolist() == [1] * 8
    with pytest.warns(UserWarning, match="taken for padding"):
        wanted = dataset(
            documents, 1, tokenizer=ByteTokenizer(pad=EOD), allow_ambiguous_pad_tokens=True
        )
    sample = wanted[0]
    assert not (sample["tokens"] == EOD).any()
    assert (sample["loss_mask"] == 0).any()


def test_document_without_its_end_token():
    """Boundaries come from the documents that were read; end tokens only reset what they reset."""
    documents = [[1, 2, EOD], [3, 4, 5], [6, EOD, 7, EOD]]
    masked = dataset(documents, inter_document_masking=True, segment_ids=True)
    lengths = [len(documents[d]) for d in masked.document_index]
    sample = masked[0]
    starts = np.cumsum([0, *lengths])[:3]
    assert sample["cu_seqlens"].tolist() == [*starts[starts < 8], *[8] * (9 - len(starts))]
    expected = np.repeat([1, 2, 3], lengths)[:8]
    assert sample["segment_ids"].tolist() == expected.tolist()
    reset = dataset(documents, reset_position_ids=True)[0]
    ends = np.flatnonzero(reset["tokens"] == EOD) + 1
    np.testing.assert_array_equal(np.flatnonzero(reset["position_ids"] == 0), [0, *ends[ends < 8]])


def test_empty_documents_make_no_segments():
    documents = [[], [1, 2, 3], [], [], [4, 5], [], [6, 7, 8, 9, 10], []]
    one = dataset(documents, 40, inter_document_masking=True, segment_ids=True)
    batch = one.get_batch(np.arange(len(one)))
    for row in range(len(one)):
        boundaries = batch["cu_seqlens"][row]
        real = boundaries[: 1 + int(np.argmax(boundaries == 8))]
        assert (np.diff(real) > 0).all()
        assert batch["max_seqlen"][row] == np.diff(real).max()
        np.testing.assert_array_equal(
            batch["segment_ids"][row], np.repeat(np.arange(1, len(real)), np.diff(real))
        )


@pytest.mark.parametrize(("last", "boundaries"), [([4], [0, 8]), ([4, 5], [0, 3, 8]), ([], [0, 8])])
def test_the_extra_token_makes_no_document_of_its_own(last, boundaries):
    """Without it nothing is left of a last document of one token; padding joins what is left."""
    for seed in range(20):
        one = dataset(
            [[1, 2, 3], last],
            split=Split.valid,
            drop_last_partial_validation_sequence=False,
            inter_document_masking=True,
            random_seed=seed,
        )
        if one.document_index[0] == 0:
            assert one[0]["cu_seqlens"].tolist() == boundaries + [8] * (9 - len(boundaries))
            assert one[0]["max_seqlen"] == max(np.diff(boundaries))
            return
    raise AssertionError("no seed keeps the order of the two documents")


def test_padding_has_no_segment():
    one = padded_first(segment_ids=True)
    assert one[0]["segment_ids"].tolist() == [1, 1, 1, 1, 1, 0, 0, 0]


def test_dense_mask_only_on_request():
    assert "attention_mask" not in dataset([range(9)])[0]
    mask = dataset([range(9)], create_attention_mask=True)[0]["attention_mask"]
    np.testing.assert_array_equal(mask, ~np.tri(8, dtype=bool)[None])
    both = dataset([range(9)], create_attention_mask=True, inter_document_masking=True)[0]
    assert "attention_mask" not in both


@pytest.mark.parametrize("output_dtype", ["int64", "int32"])
def test_dtypes_and_order_of_fields(output_dtype):
    one = dataset(
        [range(9)], inter_document_masking=True, segment_ids=True, output_dtype=output_dtype
    )
    assert {name: values.dtype.name for name, values in one.get_batch([0]).items()} == {
        "tokens": output_dtype,
        "labels": output_dtype,
        "loss_mask": "float32",
        "position_ids": output_dtype,
        "cu_seqlens": "int32",
        "max_seqlen": "int32",
        "segment_ids": "int32",
    }
    assert list(one[0])[:2] == ["tokens", "labels"]


@pytest.mark.parametrize("index", [3, 10**12, -2])
def test_sample_that_does_not_exist(index):
    one = dataset([range(25)])
    message = f"sample {index} was asked of the train split of unnamed data, which has 3"
    with pytest.raises(IndexError, match=message):
        one[index]
    with pytest.raises(IndexError, match=message):
        one.get_batch([0, index])


def test_index_that_is_no_integer():
    with pytest.raises(TypeError, match="need an integer"):
        dataset([range(25)])[True]
    with pytest.raises(TypeError, match="need integers"):
        dataset([range(25)]).get_batch(np.array([1.0]))


def test_iterating_ends():
    assert len(list(dataset([range(25)]))) == 3


def test_getitems_are_the_items():
    one = dataset([range(1, 40)])
    for sample, k in zip(one.__getitems__([2, 0, PADDING]), [2, 0, None], strict=True):
        for name, values in one[k].items():
            np.testing.assert_array_equal(sample[name], values)


def test_mock_needs_no_blend():
    given = config()
    low = MockGPTDataset.build_low_level_dataset(None, given)
    with pytest.raises(ValueError, match="config: it names data"):
        MockGPTDataset(low, None, np.arange(3), 1, Split.train, given)
