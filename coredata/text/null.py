"""Text that is numbers already: for benchmarks, tests and data tokenised elsewhere."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from coredata._typing import Int32, Int64

_LARGEST = 2**31 - 1


class NullTokenizer:
    """Ids written as decimal numbers with white space between: "17 4 4 0".

    Args:
        vocab_size: ids in text are below this. The id `vocab_size` itself ends documents, as in
            the reference, so the attribute `vocab_size` is one more.
        unique_identifiers: what goes into the names of index caches; None for class and size.
    """

    def __init__(
        self, vocab_size: int, unique_identifiers: Mapping[str, Any] | None = None
    ) -> None:
        if not 0 < vocab_size <= _LARGEST:
            raise ValueError(
                f"NullTokenizer needs a vocabulary size from 1 to {_LARGEST}, got {vocab_size}; "
                "an example: NullTokenizer(50257)"
            )
        self._size = vocab_size
        self._identifiers = unique_identifiers

    def __repr__(self) -> str:
        return f"NullTokenizer(vocab_size={self._size})"

    @property
    def eod(self) -> int:
        """The id after the last of text."""
        return self._size

    @property
    def eos(self) -> int:
        """Same as `eod`."""
        return self._size

    @property
    def pad(self) -> None:
        """There is none."""
        return None

    @property
    def bos(self) -> None:
        """There is none."""
        return None

    @property
    def vocab_size(self) -> int:
        """The ids of text and the end-of-document id."""
        return self._size + 1

    @property
    def special_tokens_dict(self) -> dict[str, int]:
        """Role -> id."""
        return {"eos_token": self.eod}

    @property
    def unique_identifiers(self) -> dict[str, Any]:
        """What goes into the names of index caches."""
        if self._identifiers is not None:
            return dict(self._identifiers)
        return {"class": "NullTokenizer", "vocab_size": self._size}

    @property
    def content_hash(self) -> str:
        """SHA-256 of the size."""
        return hashlib.sha256(f"numbers below {self._size}".encode()).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The numbers in `text`.

        Raises:
            ValueError: a word that is no number, or a number outside the vocabulary.
        """
        return [self._number(word, position) for position, word in enumerate(text.split())]

    def encode_batch(
        self, texts: Sequence[str]
    ) -> tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " texts"]]:
        """The numbers of all texts, end to end, and how many each has.

        Raises:
            ValueError: a word that is no number, or a number outside the vocabulary.
        """
        parts = [np.array(self.encode(text), dtype=np.int32) for text in texts]
        lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
        return np.concatenate([np.empty(0, dtype=np.int32), *parts]), lengths

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """`ids` as numbers, one blank between them."""
        return " ".join(str(index(token)) for token in ids)

    def token_id(self, name: str) -> int | None:
        """The number `name`, None if it is none of the vocabulary."""
        if name.isascii() and name.isdigit() and int(name) < self.vocab_size:
            return int(name)
        return None

    def _number(self, word: str, position: int) -> int:
        if word.isascii() and word.isdigit() and int(word) < self._size:
            return int(word)
        raise ValueError(
            f"word {position} of the text is {word!r}; {self} takes only numbers from 0 to "
            f"{self._size - 1} with blanks between, such as '0 {self._size - 1}'"
        )
