"""Which ids samples take for end and padding."""

from dataclasses import dataclass

import pytest

from coredata.datasets.special_ids import SpecialIds, special_ids
from coredata.text import ByteTokenizer, NullTokenizer


def test_ids_of_a_tokenizer():
    assert special_ids(ByteTokenizer()) == SpecialIds(eod=256, pad=257)


def test_no_pad_id():
    assert special_ids(NullTokenizer(10)) == SpecialIds(eod=10, pad=-1)


def test_a_tokenizer_without_any():
    assert special_ids(object()) == SpecialIds(eod=-1, pad=-1)


def test_pad_that_is_also_eod_is_not_used():
    with pytest.warns(UserWarning, match=r"256 of ByteTokenizer is also its eod.*-1 is used"):
        assert special_ids(ByteTokenizer(pad=256)) == SpecialIds(eod=256, pad=-1)


def test_pad_that_is_also_eod_may_be_wanted():
    with pytest.warns(UserWarning, match="every such token is taken for padding"):
        assert special_ids(ByteTokenizer(pad=256), True) == SpecialIds(eod=256, pad=256)


@dataclass
class Roles:
    special_tokens_dict: dict
    pad: int = 7


@pytest.mark.parametrize("role", ["unk_token", "sep_token"])
def test_pad_that_is_another_special_token(role):
    with pytest.warns(UserWarning, match=f"also its {role}"):
        assert special_ids(Roles({role: 7, "pad_token": 7})).pad == -1


def test_pads_own_role_and_texts_are_no_collision():
    assert special_ids(Roles({"pad_token": 7, "eos_token": "</s>", "extra": ["<a>"]})).pad == 7
