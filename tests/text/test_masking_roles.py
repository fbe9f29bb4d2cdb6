"""What BERT and T5 ask of a tokenizer beside the usual roles."""

import pickle

from coredata.text import TokenizerJson

BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
T5 = ("<pad>", "</s>", "<unk>", "<extra_id_10>", "<extra_id_2>", "<extra_id_1>", "<extra_id_0>")


def test_well_known_names(build):
    tokenizer = TokenizerJson(build(special=BERT))
    assert (tokenizer.cls, tokenizer.sep, tokenizer.mask, tokenizer.pad) == (2, 3, 4, 0)
    assert (tokenizer.bos, tokenizer.eos) == (None, None)
    assert tokenizer.special_tokens_dict == {
        "cls_token": 2,
        "sep_token": 3,
        "mask_token": 4,
        "pad_token": 0,
    }
    assert tokenizer.additional_special_tokens_ids == []


def test_the_configuration_comes_first(build):
    names = {"cls_token": "[UNK]", "mask_token": {"content": "[SEP]"}}
    tokenizer = TokenizerJson(build(special=BERT, tokenizer_config=names))
    assert (tokenizer.cls, tokenizer.sep, tokenizer.mask) == (1, 3, 3)


def test_two_names_for_one_role_are_no_answer_and_no_error(build):
    tokenizer = TokenizerJson(build(special=("[MASK]", "<mask>", "[CLS]")))
    assert (tokenizer.cls, tokenizer.mask) == (2, None)


def test_a_tokenizer_without_them(build):
    tokenizer = TokenizerJson(build())
    assert (tokenizer.cls, tokenizer.sep, tokenizer.mask) == (None, None, None)
    assert "mask_token" not in tokenizer.special_tokens_dict


def test_sentinels_by_number(build):
    tokenizer = TokenizerJson(build(special=T5))
    assert tokenizer.additional_special_tokens_ids == [6, 5, 4, 3]


def test_sentinels_that_a_file_lists(build):
    listed = {"additional_special_tokens": ["[SEP]", {"content": "[CLS]"}, "not a token"]}
    tokenizer = TokenizerJson(build(special=BERT, special_tokens_map=listed))
    assert tokenizer.additional_special_tokens_ids == [3, 2]


def test_the_vocabulary_by_id(build):
    tokenizer = TokenizerJson(build(special=T5, plain=("<plain>",)))
    vocabulary = pickle.loads(pickle.dumps(tokenizer)).inv_vocab
    assert list(vocabulary) == list(range(tokenizer.vocab_size))
    assert vocabulary[0] == "<pad>"
    assert vocabulary[tokenizer.vocab_size - 1] == "<plain>"
    assert all(tokenizer.token_id(token) == number for number, token in vocabulary.items())
