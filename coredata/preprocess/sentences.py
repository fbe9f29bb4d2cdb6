"""Cutting text into sentences."""

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coredata.preprocess.sentence_languages import WITH_RULES, known_code

_LANGUAGES = {
    "czech": "cs",
    "danish": "da",
    "dutch": "nl",
    "english": "en",
    "estonian": "et",
    "finnish": "fi",
    "french": "fr",
    "german": "de",
    "greek": "el",
    "italian": "it",
    "malayalam": "ml",
    "norwegian": "no",
    "polish": "pl",
    "portuguese": "pt",
    "russian": "ru",
    "slovene": "sl",
    "spanish": "es",
    "swedish": "sv",
    "turkish": "tr",
}
"""The names the reference's --lang takes, as language codes."""


@dataclass(frozen=True)
class SentenceSplitter:
    """Text to sentences, by the rules of one language, with the package sentencex.

    Attributes:
        language: a code ("en", "de", "pt-BR", …) or an English name ("english", "german", …).
            Of a language that sentencex lists but has no rules for, neither its own nor a
            relative's, sentences are cut by its general rules, which are those of English.
        keep_newlines: whether sentences keep the white space around them, so that joined they
            are the text again. Otherwise they are stripped, and blank ones left out.
    """

    language: str = "english"
    keep_newlines: bool = False

    def __call__(self, text: str) -> list[str]:
        """The sentences of `text`, in order.

        Raises:
            ImportError: the package sentencex is missing or broken.
            ValueError: the language is no code that sentencex lists, and no known name.
        """
        parts = _segment()(self.code, text)
        if not self.keep_newlines:
            return [stripped for part in parts if (stripped := part.strip())]
        return join_blanks(parts)

    @property
    def code(self) -> str:
        """The language as a code that sentencex lists.

        Raises:
            ValueError: there is none.
        """
        named = _LANGUAGES.get(self.language.lower())
        code = named or known_code(self.language, frozenset(_LANGUAGES.values()))
        if code is None:
            raise ValueError(
                f"language {self.language!r} is neither a code that sentencex knows nor one of "
                f"the names {', '.join(sorted(_LANGUAGES))}. It has rules for "
                f"{', '.join(sorted(WITH_RULES))}, and lists relatives and variants of them, such "
                "as gsw and zh-hant; for text in any other language give 'en', whose rules are "
                "the general ones"
            )
        return code

    def identity(self) -> list[Any]:
        """What decides where sentences end: settings and the version of the package."""
        return [self.code, self.keep_newlines, importlib.metadata.version("sentencex")]

    def check(self) -> None:
        """Fail now rather than at the first text.

        Raises:
            ImportError: the package sentencex is missing or broken.
            ValueError: the language is no code that sentencex lists, and no known name.
        """
        _ = self.code
        _segment()


def join_blanks(parts: list[str]) -> list[str]:
    """`parts` with each blank one joined to the one before it (to the next, at the beginning)."""
    joined: list[str] = []
    for part in parts:
        if joined and (not part.strip() or not joined[-1].strip()):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _segment() -> Callable[[str, str], list[str]]:
    try:
        import sentencex
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "splitting into sentences needs the package sentencex; "
            "pip install 'coredata[sentences]'"
        ) from error
    except ImportError as error:
        raise ImportError(
            "splitting into sentences needs the package sentencex, which is installed, but cannot "
            f"be imported ({error}); pip install --force-reinstall sentencex"
        ) from error
    return sentencex.segment
