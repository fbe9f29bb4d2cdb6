"""Cutting text into sentences."""

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
        language: a code ("en", "de", …) or an English name ("english", "german", …).
        keep_newlines: whether sentences keep the white space around them, so that joined they
            are the text again. Otherwise they are stripped, and blank ones left out.
    """

    language: str = "english"
    keep_newlines: bool = False

    def __call__(self, text: str) -> list[str]:
        """The sentences of `text`, in order.

        Raises:
            ModuleNotFoundError: the package sentencex is missing.
        """
        parts = _segment()(self.code, text)
        if not self.keep_newlines:
            return [stripped for part in parts if (stripped := part.strip())]
        return join_blanks(parts)

    @property
    def code(self) -> str:
        """The language as a code."""
        return _LANGUAGES.get(self.language.lower(), self.language)

    def identity(self) -> list[Any]:
        """What decides where sentences end: settings and the version of the package."""
        return [self.code, self.keep_newlines, importlib.metadata.version("sentencex")]

    def check(self) -> None:
        """Fail now rather than at the first text.

        Raises:
            ModuleNotFoundError: the package sentencex is missing.
            ValueError: the language is no code and no known name.
        """
        code = self.code
        if not (2 <= len(code.split("-")[0]) <= 3):
            raise ValueError(
                f"language {self.language!r} is neither a code such as 'en' nor one of the names "
                f"{', '.join(sorted(_LANGUAGES))}"
            )
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
    return sentencex.segment
