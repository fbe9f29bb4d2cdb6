"""What the rest of the library asks of a tokenizer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex, runtime_checkable

import numpy as np

from coredata._typing import Int32, Int64


@runtime_checkable
class Tokenizer(Protocol):
    """Text to token ids and back, without special tokens of its own accord.

    Any class of this shape will do; nothing derives from this one. Implementations are picklable:
    worker processes get a copy. Text that is no text (a lone surrogate, which UTF-8 cannot write)
    makes both encode methods raise `LoneSurrogateError`; `replace_lone_surrogates` mends it.
    """

    @property
    def eod(self) -> int | None:
        """Id that ends a document, if there is one."""
        ...

    @property
    def eos(self) -> int | None:
        """Id that ends a sequence for the model; most tokenizers have one id for this and eod."""
        ...

    @property
    def pad(self) -> int | None:
        """Id that fills up rows, if there is one."""
        ...

    @property
    def bos(self) -> int | None:
        """Id that starts a sequence for the model, if there is one."""
        ...

    @property
    def vocab_size(self) -> int:
        """Largest id that can come out, plus one (ids may have gaps)."""
        ...

    @property
    def special_tokens_dict(self) -> Mapping[str, int]:
        """Role ("eos_token", "pad_token", "bos_token", "sep_token", …) -> id."""
        ...

    @property
    def unique_identifiers(self) -> Mapping[str, Any]:
        """What goes into the names of index caches: JSON values."""
        ...

    @property
    def content_hash(self) -> str:
        """SHA-256, in hexadecimal, of all that decides which ids come out."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of one text.

        Raises:
            LoneSurrogateError: the text cannot be written as UTF-8.
        """
        ...

    def encode_batch(
        self, texts: Sequence[str]
    ) -> tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " texts"]]:
        """Ids of many texts, end to end, and how many belong to each text.

        Raises:
            LoneSurrogateError: a text cannot be written as UTF-8; it says which one.
        """
        ...

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Text of ids, special tokens included as far as they have a text."""
        ...

    def token_id(self, name: str) -> int | None:
        """Id of the token written `name`, None if there is none."""
        ...


def require_eod(tokenizer: Tokenizer) -> int:
    """The id that ends a document.

    Raises:
        ValueError: the tokenizer has none.
    """
    if tokenizer.eod is None:
        raise ValueError(
            f"an end-of-document token is asked for, but {type(tokenizer).__name__} has none "
            f"(vocabulary of {tokenizer.vocab_size}, special tokens "
            f"{dict(tokenizer.special_tokens_dict) or 'none'}). State one of its tokens, by name "
            "or id, such as eod='<|endoftext|>'."
        )
    return tokenizer.eod
