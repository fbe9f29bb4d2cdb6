import json
import pickle
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers

from coredata.text import (
    ByteTokenizer,
    GPT2BPETokenizer,
    NullTokenizer,
    SpecialTokenError,
    TokenizerChoiceError,
    TokenizerFileError,
    TokenizerJson,
    demo_tokenizer,
    load_tokenizer,
)

TEXT = "the cat sat, naïve 🙂\n\n  def f(x): return x<|endoftext|>end"


@pytest.fixture
def files(tmp_path):
    """The shipped tokenizer as GPT-2's two files."""
    model = json.loads(Path(demo_tokenizer()._source).read_text())["model"]
    vocabulary, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    vocabulary.write_text(json.dumps(model["vocab"]))
    merges.write_text("#version: 0.2\n" + "\n".join(model["merges"]) + "\n", encoding="utf-8")
    return vocabulary, merges


def test_the_two_files_give_the_ids_of_the_tokenizer_json(files):
    tokenizer = GPT2BPETokenizer(*map(str, files))
    expected = demo_tokenizer()
    assert tokenizer.encode(TEXT) == expected.encode(TEXT)
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert (tokenizer.eod, tokenizer.vocab_size) == (0, expected.vocab_size)
    assert pickle.loads(pickle.dumps(tokenizer)).encode(TEXT) == expected.encode(TEXT)


def test_merges_without_a_version_line_and_with_crlf(files):
    vocabulary, merges = files
    expected = GPT2BPETokenizer(str(vocabulary), str(merges)).encode(TEXT)
    lines = merges.read_text(encoding="utf-8").splitlines()[1:]
    merges.write_bytes("\r\n".join(lines).encode())
    assert GPT2BPETokenizer(str(vocabulary), str(merges)).encode(TEXT) == expected


def test_an_end_can_be_stated(files):
    tokenizer = GPT2BPETokenizer(*map(str, files), eod=5, pad="<|pad|>", split_special_tokens=True)
    assert (tokenizer.eod, tokenizer.pad) == (5, 1)
    assert 0 not in tokenizer.encode(TEXT)
    with pytest.raises(SpecialTokenError, match=r"eod='nope'"):
        GPT2BPETokenizer(*map(str, files), eod="nope")


def test_each_missing_file_is_named(files):
    vocabulary, merges = map(str, files)
    with pytest.raises(FileNotFoundError, match="vocabulary file gone does not exist"):
        GPT2BPETokenizer("gone", merges)
    with pytest.raises(FileNotFoundError, match="merge file gone does not exist"):
        GPT2BPETokenizer(vocabulary, "gone")


def test_files_the_wrong_way_round(files):
    vocabulary, merges = map(str, files)
    with pytest.raises(TokenizerFileError, match=r"is not JSON .*merges should go into merge_file"):
        GPT2BPETokenizer(merges, vocabulary)
    with pytest.raises(TokenizerFileError, match=r"line 1 of merge file .* not two tokens"):
        GPT2BPETokenizer(vocabulary, vocabulary)


def test_files_that_do_not_belong_together(files):
    vocabulary, merges = files
    merges.write_text("#version: 0.2\nq q\n")
    with pytest.raises(
        TokenizerFileError, match=r"does not belong to .* 'qq' is not among the 8192"
    ):
        GPT2BPETokenizer(str(vocabulary), str(merges))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "does not map tokens to ids"),
        ("{}", "does not map tokens to ids"),
        ('{"a": "b"}', "does not map tokens to ids"),
        ('{"a": 0}', "lacks 255 of the 256 single bytes"),
    ],
)
def test_a_vocabulary_that_is_none(files, content, reason):
    vocabulary, merges = files
    vocabulary.write_text(content)
    with pytest.raises(TokenizerFileError, match=reason):
        GPT2BPETokenizer(str(vocabulary), str(merges))


def test_merges_that_are_no_text(files):
    vocabulary, merges = files
    merges.write_bytes(b"\xff\xfe")
    with pytest.raises(TokenizerFileError, match="is not UTF-8"):
        GPT2BPETokenizer(str(vocabulary), str(merges))


def test_a_vocabulary_without_an_end(files):
    vocabulary, merges = files
    vocabulary.write_text(
        json.dumps({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))})
    )
    merges.write_text("")
    tokenizer = GPT2BPETokenizer(str(vocabulary), str(merges))
    assert (tokenizer.eod, tokenizer.vocab_size) == (None, 256)


def test_the_type_is_guessed_from_the_files(build, files):
    path = build()
    assert isinstance(load_tokenizer(model=path), TokenizerJson)
    assert isinstance(load_tokenizer(model=str(Path(path).parent)), TokenizerJson)
    vocabulary, merges = map(str, files)
    pair = load_tokenizer(vocab_file=vocabulary, merge_file=merges)
    assert isinstance(pair, GPT2BPETokenizer)
    directory = load_tokenizer(model=str(files[0].parent))
    assert isinstance(directory, GPT2BPETokenizer)
    assert directory.content_hash == pair.content_hash


def test_options_reach_the_tokenizer(build):
    tokenizer = load_tokenizer(
        "HuggingFaceTokenizer",
        build(),
        eod="<|pad|>",
        pad=0,
        bos=2,
        unique_identifiers={"class": "x"},
        split_special_tokens=True,
    )
    assert (tokenizer.eod, tokenizer.pad, tokenizer.bos) == (1, 0, 2)
    assert tokenizer.unique_identifiers == {"class": "x"}
    assert 0 not in tokenizer.encode("<|endoftext|>")


def test_types_without_files():
    assert load_tokenizer("ByteTokenizer") == ByteTokenizer()
    assert load_tokenizer("ByteTokenizer", eod="<|end|>", pad="3").eod == 267
    numbers = load_tokenizer("NullTokenizer", vocab_size=100)
    assert isinstance(numbers, NullTokenizer)
    assert numbers.vocab_size == 101


def test_the_reference_s_byte_level_tokenizer_has_its_own_ids():
    tokenizer = load_tokenizer("ByteLevelTokenizer")
    assert (tokenizer.eod, tokenizer.pad, tokenizer.bos, tokenizer.vocab_size) == (0, 1, None, 512)
    assert tokenizer.unique_identifiers == {"class": "ByteLevelTokenizer"}
    assert load_tokenizer("ByteLevelTokenizer", eod=300, vocab_size=1024).vocab_size == 1024


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "which tokenizer\\? .*ByteLevelTokenizer, ByteTokenizer, NullTokenizer"),
        ({"type": "huggingfacetokeniser"}, "Did you mean HuggingFaceTokenizer\\?"),
        ({"type": "xyz"}, "unknown tokenizer type 'xyz'. There are HuggingFaceTokenizer"),
        ({"type": "Llama2Tokenizer"}, "Llama2Tokenizer is not read here. Convert it"),
        ({"type": "HuggingFaceTokenizer"}, "needs model"),
        ({"type": "NullTokenizer"}, "needs vocab_size, for example"),
        ({"type": "NullTokenizer", "vocab_size": 5, "pad": 3}, "leave out pad"),
        ({"type": "ByteTokenizer", "model": "x"}, "has no files, but x is given"),
        ({"type": "ByteTokenizer", "eod": "<nope>"}, "eod='<nope>' is not a special token"),
        ({"type": "GPT2BPETokenizer", "vocab_file": "v"}, "got vocab_file=v"),
        ({"vocab_file": "v"}, "needs vocab_file and merge_file"),
        ({"type": "GPT2BPETokenizer"}, "got none of them"),
    ],
)
def test_what_cannot_be_chosen(arguments, message):
    with pytest.raises(TokenizerChoiceError, match=message):
        load_tokenizer(**arguments)


def test_files_that_are_not_there_or_of_another_format(tmp_path):
    with pytest.raises(FileNotFoundError, match="tokenizer gpt2 does not exist here"):
        load_tokenizer(model="gpt2")
    with pytest.raises(FileNotFoundError, match=r"there is no .*tokenizer\.json"):
        load_tokenizer("HuggingFaceTokenizer", str(tmp_path))
    sentencepiece = tmp_path / "tokenizer.model"
    sentencepiece.write_bytes(b"")
    with pytest.raises(TokenizerChoiceError, match=r"of a format that is not read here. Convert"):
        load_tokenizer(model=str(sentencepiece))
