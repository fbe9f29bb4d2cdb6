import string
import sys

import pytest
import sentencex
from hypothesis import given
from hypothesis import strategies as st

from coredata.preprocess import SentenceSplitter
from coredata.preprocess.sentence_languages import WITH_RULES, WITHOUT_RULES, known_code
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
    for code in ("zh-Hans", "de-at", "be-x-old", "sw", "gsw"):
        splitter = SentenceSplitter(code)
        splitter.check()
        assert splitter.code == code.lower()


def test_variants_that_are_not_listed_are_cut_as_their_language():
    assert SentenceSplitter("pt_PT").code == "pt"
    assert SentenceSplitter("fr-CA").code == "fr"
    assert SentenceSplitter("zh-Hant-HK").code == "zh-hant"
    text = "Voir p. ex. M. Dupont. Bien."
    assert SentenceSplitter("fr-CA")(text) == SentenceSplitter("fr")(text)


@pytest.mark.parametrize("language", ["klingon", "xx", "xx-DE", "vi", "", "-", "english-"])
def test_languages_that_are_not_known(language):
    splitter = SentenceSplitter(language)
    known = (
        "names czech, .*, turkish. It has rules for am, .*, uk, .*; for text in any .* give 'en'"
    )
    for ask in (splitter.check, splitter.identity, lambda: splitter("One. Two.")):
        with pytest.raises(ValueError, match=rf"language '{language}' is neither .*{known}"):
            ask()


def test_codes_that_are_refused_would_be_cut_by_the_english_rules():
    probe = (
        "Das ist z.B. Nr. Fünf. M. Dupont. Av. Brasil. Sr. Puig. Prof. Rossi. Sig. Verdi. o.a. "
        "Tekst. tzv. Slovo. ul. Nowa. fx. Noget. esim. Teksti. Κείμενο; Ερώτηση. ул. Ленина. вул. "
        "Нова. ж. Қазақ. т.б. Тек. திரு. குமார். ഡോ. നായർ. Սա է։ Նա։ Այո: አቶ. ከበደ። ж.-д. кв. Дом. "
        "г. Москва. Mme. Cie. Abc. EE.UU. España. dhr. Jansen. d. أحمد؟ 日本。「本。」本。"
    )
    english = sentencex.segment("en", probe)
    letters = string.ascii_lowercase
    codes = [a + b + c for a in letters for b in letters for c in ("", *letters)]
    other = {code for code in codes if sentencex.segment(code, probe) != english}
    assert {"de", "fr", "it", "ru", "gsw", "udm", "sk", "cs"} <= other
    assert [code for code in other if known_code(code) is None] == []


def test_the_list_of_languages_is_whole():
    assert len(WITH_RULES) == 31
    assert len(WITHOUT_RULES) > 300
    assert not WITH_RULES & WITHOUT_RULES


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'coredata\[sentences\]'"):
        SentenceSplitter().check()


def test_with_a_broken_package(tmp_path, monkeypatch):
    (tmp_path / "sentencex.py").write_text("raise ImportError('sentencex.so: no')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sentencex")
    with pytest.raises(
        ImportError, match=r"package sentencex, .* \(sentencex\.so: no\); pip install"
    ):
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
