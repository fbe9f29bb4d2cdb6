import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.preprocess import SentenceSplitter
from coredata.preprocess.sentences import join_blanks

TEXT = "Dr. Smith came.  He sat down.\nThen he left.\n\nA new paragraph! Is it? Yes"
STRIPPED = ["Dr. Smith came.", "He sat down.", "Then he left.", "A new paragraph!", "Is it?", "Yes"]


def test_sentences_are_stripped():
    assert SentenceSplitter()(TEXT) == STRIPPED


def test_keep_newlines_keeps_all_white_space():
    sentences = SentenceSplitter(keep_newlines=True)(TEXT)
    assert [sentence.strip() for sentence in sentences] == STRIPPED
    assert "".join(sentences) == TEXT
    assert sentences[2] == "Then he left.\n\n"


@given(text=st.text(st.sampled_from("aB.!? \n\té漢。"), max_size=40))
def test_keep_newlines_loses_nothing(text):
    kept = SentenceSplitter(keep_newlines=True)(text)
    assert "".join(kept) == text
    stripped = SentenceSplitter()(text)
    assert [part for sentence in kept if (part := sentence.strip())] == stripped


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t \n"])
def test_blank_texts(text):
    assert SentenceSplitter()(text) == []
    assert "".join(SentenceSplitter(keep_newlines=True)(text)) == text


def test_join_blanks():
    assert join_blanks(["\n", "a", " ", "\n", "b", "\n"]) == ["\na \n", "b\n"]
    assert join_blanks(["\n", " "]) == ["\n "]
    assert join_blanks([]) == []


def test_languages_by_name_and_code():
    assert SentenceSplitter("german").code == "de"
    assert SentenceSplitter("German").code == "de"
    assert SentenceSplitter("ja").code == "ja"
    SentenceSplitter("zh-Hans").check()
    with pytest.raises(ValueError, match=r"language 'klingon' is neither a code such as 'en' nor"):
        SentenceSplitter("klingon").check()


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'coredata\[sentences\]'"):
        SentenceSplitter().check()


def test_sentences_become_sequences_of_one_document(corpus):
    rows = [{"text": "One. Two."}, {"text": ["Three. Four.", "Five"]}, {"text": " \n"}]
    report = corpus.run(
        corpus.write_rows("in.jsonl", rows), splitter=SentenceSplitter(), append_eod=True
    )
    assert report.prefixes == {"text": f"{corpus.prefix}_text_sentence"}
    assert corpus.texts(level="sentence") == [
        ["One.", "Two.∎"],
        ["Three.", "Four.", "Five∎"],
        [],
    ]


def test_white_space_between_sentences_is_kept(corpus):
    path = corpus.write_rows("in.jsonl", [{"text": "One.\nTwo.\n\n"}])
    corpus.run(path, splitter=SentenceSplitter(keep_newlines=True))
    assert corpus.texts(level="sentence") == [["One.\n", "Two.\n\n"]]
