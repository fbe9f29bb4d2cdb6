import pytest

from coredata.text import SpecialTokenError, TokenizerJson, require_eod

CHAT = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "</s>")


def found(tokenizer):
    return tokenizer.eod, tokenizer.pad, tokenizer.bos


def test_the_configuration_beside_the_file_comes_first(build):
    path = build(
        special=CHAT,
        tokenizer_config={
            "eos_token": "<|im_end|>",
            "pad_token": {"content": "<|endoftext|>", "special": True},
            "bos_token": None,
            "add_bos_token": False,
            "unk_token": "</s>",
        },
        generation_config={"eos_token_id": [2, 0]},
    )
    tokenizer = TokenizerJson(path)
    assert found(tokenizer) == (2, 0, None)
    assert tokenizer.special_tokens_dict == {"eos_token": 2, "pad_token": 0, "unk_token": 3}


def test_special_tokens_map_alone(build):
    path = build(
        special=CHAT, special_tokens_map={"eos_token": "</s>", "bos_token": "<|im_start|>"}
    )
    assert found(TokenizerJson(path)) == (3, None, 1)


def test_generation_config_alone(build):
    path = build(special=CHAT, generation_config={"eos_token_id": 3, "pad_token_id": 0})
    assert found(TokenizerJson(path)) == (3, 0, None)


def test_generation_config_with_several_ends_is_ambiguous(build):
    path = build(special=CHAT, generation_config={"eos_token_id": [2, 0]})
    with pytest.raises(
        SpecialTokenError,
        match=r"more than one eos token: 2 \(<\|im_end\|> in gen.*for example eod=2",
    ):
        TokenizerJson(path)
    assert TokenizerJson(path, eod="<|endoftext|>").eod == 0


def test_two_files_that_contradict_each_other(build):
    path = build(
        special=CHAT,
        tokenizer_config={"eos_token": "<|im_end|>"},
        special_tokens_map={"eos_token": "</s>"},
    )
    with pytest.raises(
        SpecialTokenError,
        match=r"2 \(<\|im_end\|> in tokenizer_config.json\), 3 \(</s> in special_tokens_map",
    ):
        TokenizerJson(path)
    assert TokenizerJson(path, eod=3).eod == 3


def test_two_files_that_agree(build):
    says = {"eos_token": "</s>"}
    path = build(special=CHAT, tokenizer_config=says, special_tokens_map=says)
    assert TokenizerJson(path).eod == 3


@pytest.mark.parametrize(
    "name", ["<|endoftext|>", "</s>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "<eos>", "[EOS]"]
)
def test_well_known_names(build, name):
    assert TokenizerJson(build(special=("<unk>", name))).eod == 1


def test_two_well_known_names_are_ambiguous(build):
    path = build(special=("<|endoftext|>", "</s>"))
    with pytest.raises(
        SpecialTokenError, match=r"more than one eos token: 0 \(.*\), 1 \(</s>\).*example eod=0"
    ):
        TokenizerJson(path)
    assert TokenizerJson(path, eod="</s>").eod == 1


def test_a_well_known_name_that_is_not_special_does_not_count(build):
    tokenizer = TokenizerJson(build(special=("<eos>",), plain=("</s>",)))
    assert tokenizer.token_id("</s>") is not None
    assert tokenizer.eod == tokenizer.token_id("<eos>")


def test_no_end_at_all_is_an_error_only_where_it_is_needed(build):
    tokenizer = TokenizerJson(build(special=("[CLS]", "[SEP]", "[PAD]")))
    assert found(tokenizer) == (None, 2, None)
    with pytest.raises(ValueError, match=r"end-of-document token .*TokenizerJson has none.*eod="):
        require_eod(tokenizer)


def test_an_end_that_the_vocabulary_lacks(build):
    path = build(special=CHAT, tokenizer_config={"eos_token": "<|gone|>"})
    with pytest.raises(SpecialTokenError, match=r"eos token is '<\|gone\|>', which is not in"):
        TokenizerJson(path)
    assert TokenizerJson(path, eod="</s>").eod == 3


def test_a_padding_token_that_the_vocabulary_lacks_is_none(build):
    path = build(special=("</s>",), tokenizer_config={"eos_token": "</s>", "pad_token": "[PAD]"})
    assert TokenizerJson(path).pad is None


def test_what_is_stated_wins(build):
    path = build(special=CHAT, tokenizer_config={"eos_token": "<|im_end|>"})
    tokenizer = TokenizerJson(path, eod="<|endoftext|>", pad=3, bos="1")
    assert found(tokenizer) == (0, 3, 1)
    assert tokenizer.eos == 2
    assert tokenizer.special_tokens_dict == {"eos_token": 2, "pad_token": 3, "bos_token": 1}


def test_any_token_can_be_stated_not_only_special_ones(build):
    tokenizer = TokenizerJson(build(plain=("<doc>",)), eod="<doc>")
    assert tokenizer.eod == tokenizer.token_id("<doc>")


def test_a_stated_name_that_is_near_another(build):
    with pytest.raises(SpecialTokenError, match=r"eod='<\|endoftxt\|>'.*mean '<\|endoftext\|>'"):
        TokenizerJson(build(), eod="<|endoftxt|>")


@pytest.mark.parametrize("number", [-1, 10**6])
def test_a_stated_id_that_is_none(build, number):
    with pytest.raises(SpecialTokenError, match=f"pad={number} is not an id of .*<.pad.> 1"):
        TokenizerJson(build(), pad=number)


@pytest.mark.parametrize(("content", "reason"), [("{", "is not JSON"), ("[]", "holds a list")])
def test_a_broken_configuration(build, tmp_path, content, reason):
    path = build()
    (tmp_path / "tokenizer" / "tokenizer_config.json").write_text(content)
    with pytest.raises(SpecialTokenError, match=f"tokenizer_config.json {reason}"):
        TokenizerJson(path)
