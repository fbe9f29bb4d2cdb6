"""Packing samples into sequences and taking them apart again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen import (
    boundaries,
    clear_padding,
    pack_samples,
    padding_mask,
    token_counts,
    unpack_samples,
)

FIELDS = ("tokens", "labels", "loss_mask", "position_ids")


def sample(original, padded, first=0):
    return {
        "tokens": first + np.arange(padded),
        "labels": first + np.arange(padded) + 1,
        "loss_mask": np.ones(padded, np.float32),
        "position_ids": np.arange(padded),
        "original_seq_len": np.array([original], np.int32),
        "padded_seq_len": np.array([padded], np.int32),
    }


def pairs(least=0):
    pair = st.tuples(st.integers(0, 6), st.integers(0, 3)).filter(lambda x: sum(x) >= least)
    return st.lists(pair, min_size=1, max_size=8)


@settings(deadline=None)
@given(pairs())
def test_padding_starts_at_the_original_length_of_each_segment(sizes):
    packed = pack_samples([sample(a, a + b, 1) for a, b in sizes])
    mask = padding_mask(packed["cu_seqlens"], packed["cu_seqlens_padded"])
    assert mask.tolist() == [x for a, b in sizes for x in [False] * a + [True] * b]
    cleared = clear_padding(packed)
    assert set(cleared) == set(packed)
    for field in FIELDS:
        assert cleared[field].dtype == packed[field].dtype
        assert not cleared[field][mask].any()
        np.testing.assert_array_equal(cleared[field][~mask], packed[field][~mask])


@settings(deadline=None)
@given(pairs(least=1))
def test_packs_come_apart_into_what_went_in(sizes):
    samples = [sample(a + b, a + b, 100 * i) for i, (a, b) in enumerate(sizes)]
    packed = pack_samples(samples)
    total = len(packed["tokens"])
    pack = {field: packed[field] for field in FIELDS}
    pack["cu_seqlens"] = np.concatenate([packed["cu_seqlens"], np.full(5, total, np.int32)])
    pack["max_seqlen"] = packed["max_seqlen"]
    parts = unpack_samples([pack, pack])
    assert len(parts) == 2 * len(samples)
    for part, expected in zip(parts, samples + samples, strict=True):
        assert set(part) == set(expected)
        for name, array in expected.items():
            assert part[name].dtype == array.dtype
            np.testing.assert_array_equal(part[name], array)


def test_a_number_of_a_pack_is_each_parts():
    pack = {"tokens": np.arange(4), "cu_seqlens": np.array([0, 3, 3, 4]), "dataset_id": np.int32(7)}
    parts = unpack_samples([pack])
    assert [part["tokens"].tolist() for part in parts] == [[0, 1, 2], [3]]
    assert [part["dataset_id"] for part in parts] == [7, 7]


def test_single_samples_are_taken_as_they_are():
    samples = [sample(3, 4), sample(5, 8)]
    unpacked = unpack_samples(samples)
    assert [p["padded_seq_len"].tolist() for p in unpacked] == [[4], [8]]
    assert unpack_samples([]) == []


def test_boundaries_are_32_bit_and_checked():
    assert boundaries(np.array([3, 0, 2])).tolist() == [0, 3, 3, 5]
    assert boundaries(np.array([2**31 - 1])).tolist() == [0, 2**31 - 1]
    with pytest.raises(ValueError, match="2147483648 tokens in one pack: boundaries are 32-bit"):
        boundaries(np.array([2**30, 2**30]))


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**31 - 1), max_size=20))
def test_counts_are_exact(lengths):
    counts = token_counts(np.array(lengths, np.int64))
    assert counts == (sum(lengths), sum(n * n for n in lengths))


def test_counts_are_exact_where_32_bit_floats_and_64_bit_integers_are_not():
    lengths = np.full(9, 2**31 - 1)
    assert token_counts(lengths).squared == 9 * (2**31 - 1) ** 2 > 2**63
    assert token_counts(np.array([2**24, 1])).tokens == 2**24 + 1
    assert token_counts(np.array([3, 3], np.int32)) == (6, 18)


def test_lengths_that_contradict_the_fields_are_refused():
    wrong = {**sample(3, 4), "labels": np.arange(5)}
    message = "Sample 1 of the pack has 5 labels, but its padded_seq_len is 4"
    with pytest.raises(ValueError, match=message):
        pack_samples([sample(1, 1), wrong])
    with pytest.raises(ValueError, match=r"Sample 0 .* original_seq_len 5; .* padded_seq_len 4"):
        pack_samples([sample(5, 4)])
    with pytest.raises(ValueError, match="no sample to pack"):
        pack_samples([])


PACK = {"tokens": np.arange(4), "cu_seqlens": np.array([0, 4])}


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([PACK, sample(3, 4)], "Sample 1 of the batch has padded_seq_len, sample 0 cu_seqlens"),
        ([sample(3, 4), PACK], "Sample 1 of the batch has cu_seqlens, sample 0 padded_seq_len"),
        ([{"tokens": np.arange(4)}], "Sample 0 of the batch has neither"),
        ([{**PACK, "padded_seq_len": 4}], "Sample 0 of the batch has both"),
        ([{**PACK, "cu_seqlens": np.array([0, 3])}], "sample 0 must rise from 0 to its 4 tokens"),
        ([{**PACK, "cu_seqlens": np.array([1, 4])}], "sample 0 must rise from 0 to its 4 tokens"),
        ([PACK, {**PACK, "cu_seqlens": np.array([0, 3, 2, 4])}], "cu_seqlens of sample 1 must"),
        ([{**PACK, "extra": np.arange(3)}], r"Field extra of sample 0 has shape \(3,\)"),
    ],
)
def test_what_cannot_be_unpacked_is_refused(batch, message):
    with pytest.raises(ValueError, match=message):
        unpack_samples(batch)
