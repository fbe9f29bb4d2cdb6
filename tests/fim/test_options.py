"""Settings that cannot work are refused, with what would work."""

import numpy as np
import pytest

from coredata.fim import DEFAULT_TOKENS, FIMOptions, FIMTokenIds, FIMTokens, FIMVocabularyError
from coredata.text import ByteTokenizer


def test_defaults_are_megatrons():
    options = FIMOptions()
    assert (options.fim_rate, options.fim_spm_rate) == (0.5, 0.5)
    assert options.resolve(ByteTokenizer()) == FIMTokenIds(258, 259, 260, 261, 256)


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["fim_rate", "fim_spm_rate", "fim_fragment_rate"])
def test_a_rate_is_a_probability(name, rate):
    with pytest.raises(ValueError, match=rf"{name} must be a probability from 0 to 1, found"):
        FIMOptions(**{name: rate})


@pytest.mark.parametrize("rate", [0, 1, 0.0, 1.0])
def test_rates_of_nothing_and_of_everything_are_legal(rate):
    assert FIMOptions(fim_rate=rate, fim_spm_rate=rate).fim_rate == rate


def test_fragments_need_a_rate():
    with pytest.raises(ValueError, match=r"fim_fragment_rate, .* is None. Give e.g."):
        FIMOptions(fim_split_sample="<file_sep>")


@pytest.mark.parametrize("name", ["fim_no_prefix", "fim_split_sample"])
def test_empty_strings_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} is an empty string"):
        FIMOptions(**{name: ""}, fim_fragment_rate=0.5)


def test_all_missing_tokens_are_named():
    names = FIMTokens(middle="<mid>", pad="<p>")
    with pytest.raises(FIMVocabularyError, match=r"lacks .*: middle '<mid>', pad '<p>'\. Add"):
        FIMOptions(fim_extra_tokens=names).resolve(ByteTokenizer())


def test_tokens_that_share_an_id_are_refused():
    names = FIMTokens(middle="<fim_suffix>")
    with pytest.raises(FIMVocabularyError, match="need four ids, but they are 258, 260, 260, 256"):
        FIMOptions(fim_extra_tokens=names).resolve(ByteTokenizer())


def test_names_come_from_a_mapping_and_go_back():
    assert FIMTokens.of(DEFAULT_TOKENS.as_dict()) == DEFAULT_TOKENS
    with pytest.raises(ValueError, match=r"missing: eod, unknown: end\. Give e\.g\."):
        FIMTokens.of({"prefix": "a", "middle": "b", "suffix": "c", "pad": "d", "end": "e"})


def test_a_split_token_may_be_any_single_id():
    split = {"fim_fragment_rate": 0.5}
    tokenizer = ByteTokenizer()
    assert FIMOptions(fim_split_sample="<file_sep>", **split).resolve(tokenizer).split == 262
    assert FIMOptions(fim_split_sample="\n", **split).resolve(tokenizer).split == 10
    with pytest.raises(FIMVocabularyError, match=r"'<sep>' must be one token, .* makes 5 ids"):
        FIMOptions(fim_split_sample="<sep>", **split).resolve(tokenizer)


def test_ids_may_be_numpy_integers():
    class Numpy(ByteTokenizer):
        def token_id(self, name):
            return np.int32(super().token_id(name))

    assert FIMOptions().resolve(Numpy()).pad == 261
