import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.text import (
    ByteTokenizer,
    LoneSurrogateError,
    NullTokenizer,
    Tokenizer,
    replace_lone_surrogates,
    require_eod,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def test_ids_of_the_reference_vectors():
    tokenizer = ByteTokenizer()
    assert (tokenizer.eod, tokenizer.eos, tokenizer.pad, tokenizer.bos) == (256, 256, 257, None)
    assert tokenizer.vocab_size == 268
    names = ["<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<file_sep>"]
    assert [tokenizer.token_id(name) for name in names] == [258, 259, 260, 261, 262]
    roles = ["<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"]
    assert [tokenizer.token_id(name) for name in roles] == [263, 264, 265, 266, 267]
    assert tokenizer.token_id("<|no such|>") is None
    assert tokenizer.unique_identifiers == {"class": "ByteTokenizer"}
    assert tokenizer.special_tokens_dict == {"eos_token": 256, "pad_token": 257}


def test_bytes_come_out_as_they_are():
    assert ByteTokenizer().encode("a🙂<|end|>") == list("a🙂<|end|>".encode())


def test_decoding_drops_special_ids_and_replaces_what_is_no_utf8():
    tokenizer = ByteTokenizer()
    assert tokenizer.decode([104, 256, 0xC3, 0xA9, 300, 0xC3]) == "hé\ufffd"
    assert tokenizer.decode(np.array([104, 257, 105])) == "hi"


@given(st.lists(TEXT, max_size=5))
def test_a_batch_is_its_texts_end_to_end(texts):
    tokenizer = ByteTokenizer()
    ids, lengths = tokenizer.encode_batch(texts)
    assert (ids.dtype, lengths.dtype) == (np.int32, np.int64)
    assert ids.tolist() == [token for text in texts for token in tokenizer.encode(text)]
    parts = np.split(ids, np.cumsum(lengths))[:-1]
    assert [tokenizer.decode(part) for part in parts] == texts


def test_vocabulary_size_can_be_larger_but_not_too_small():
    assert ByteTokenizer(vocab_size=512).vocab_size == 512
    with pytest.raises(ValueError, match=r"vocab_size=200 does not hold.*Use vocab_size=268"):
        ByteTokenizer(vocab_size=200)
    with pytest.raises(ValueError, match="-1 is negative"):
        ByteTokenizer(eod=-1)


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), NullTokenizer(7)])
def test_they_are_tokenizers_and_picklable(tokenizer):
    assert isinstance(tokenizer, Tokenizer)
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode("3") == tokenizer.encode("3")
    assert copy.content_hash == tokenizer.content_hash
    assert require_eod(copy) == tokenizer.eod


def test_hash_tells_settings_apart():
    assert ByteTokenizer().content_hash != ByteTokenizer(eod=0).content_hash
    assert NullTokenizer(7).content_hash != NullTokenizer(8).content_hash


def test_identifiers_can_be_given():
    given = {"class": "theirs", "tokenizer_path": None}
    assert ByteTokenizer(unique_identifiers=given).unique_identifiers == given
    assert NullTokenizer(7, unique_identifiers=given).unique_identifiers == given
    assert NullTokenizer(7).unique_identifiers == {"class": "NullTokenizer", "vocab_size": 7}


@pytest.mark.parametrize("text", ["a\ud83d", "\udc00", "x\ud83dy\ude42"])
def test_a_lone_surrogate_is_named_with_its_place(text):
    position = next(i for i, c in enumerate(text) if 0xD800 <= ord(c) < 0xE000)
    where = rf"U\+{ord(text[position]):04X} at character {position}"
    with pytest.raises(LoneSurrogateError, match=f"{where}: .*replace_lone_surrogates"):
        ByteTokenizer().encode(text)
    with pytest.raises(LoneSurrogateError, match=f"{where} of text 1"):
        ByteTokenizer().encode_batch(["fine", text])


def test_lone_surrogates_are_replaced_and_counted():
    assert replace_lone_surrogates("x\ud83dy\ude42") == ("x\ufffdy\ufffd", 2)
    assert replace_lone_surrogates("plain") == ("plain", 0)
    assert replace_lone_surrogates("naïve 🙂") == ("naïve 🙂", 0)


def test_numbers():
    tokenizer = NullTokenizer(10)
    assert (tokenizer.eod, tokenizer.vocab_size, tokenizer.pad, tokenizer.bos) == (
        10,
        11,
        None,
        None,
    )
    assert tokenizer.encode(" 3 0\n9 ") == [3, 0, 9]
    assert tokenizer.encode("") == []
    assert tokenizer.decode([3, 0, 9]) == "3 0 9"
    assert (tokenizer.token_id("10"), tokenizer.token_id("11")) == (10, None)
    ids, lengths = tokenizer.encode_batch(["1 2", "", "3"])
    assert (ids.tolist(), lengths.tolist()) == ([1, 2, 3], [2, 0, 1])
    assert (ids.dtype, lengths.dtype) == (np.int32, np.int64)


@pytest.mark.parametrize("word", ["10", "-1", "x", "1.5", "²"])
def test_what_is_no_number_of_the_vocabulary_is_named(word):
    with pytest.raises(ValueError, match=r"word 1 of the text is .*numbers from 0 to 9"):
        NullTokenizer(10).encode(f"3 {word}")


@pytest.mark.parametrize("size", [0, -5, 2**31])
def test_a_size_that_makes_no_sense(size):
    with pytest.raises(ValueError, match=f"got {size}"):
        NullTokenizer(size)


def test_a_tokenizer_without_an_end_says_so():
    class Endless:
        eod = eos = pad = bos = None
        vocab_size = 3
        special_tokens_dict: dict[str, int] = {}  # noqa: RUF012
        unique_identifiers: dict[str, str] = {}  # noqa: RUF012
        content_hash = ""

        def encode(self, text):
            return []

        def encode_batch(self, texts):
            return np.empty(0, np.int32), np.zeros(len(texts), np.int64)

        def decode(self, ids):
            return ""

        def token_id(self, name):
            return None

    with pytest.raises(ValueError, match=r"Endless has none .*vocabulary of 3.*eod="):
        require_eod(Endless())
