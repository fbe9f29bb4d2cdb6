"""A byte is its value: the tokenizer that needs no file."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from coredata._typing import Int32, Int64
from coredata.text.surrogates import utf8

_BYTES = 256
_SPECIAL = {
    "<|endoftext|>": 256,
    "<pad>": 257,
    "<fim_prefix>": 258,
    "<fim_middle>": 259,
    "<fim_suffix>": 260,
    "<fim_pad>": 261,
    "<file_sep>": 262,
    "<|system|>": 263,
    "<|user|>": 264,
    "<|assistant|>": 265,
    "<|tool|>": 266,
    "<|end|>": 267,
}


@dataclass(frozen=True)
class ByteTokenizer:
    """UTF-8 bytes as ids 0…255, special tokens above them.

    Special tokens never come out of text; only code that asks for them by name puts them in.

    Attributes:
        eod: id that ends a document; also `eos`.
        pad: id that fills up rows.
        bos: id that starts a sequence, if any.
        special_tokens: name -> id.
        vocab_size: at least the largest id plus one; 0 means exactly that.
        unique_identifiers: what goes into the names of index caches.
    """

    eod: int = 256
    pad: int | None = 257
    bos: int | None = None
    special_tokens: Mapping[str, int] = field(default_factory=lambda: dict(_SPECIAL), hash=False)
    vocab_size: int = 0
    unique_identifiers: Mapping[str, Any] = field(
        default_factory=lambda: {"class": "ByteTokenizer"}, hash=False
    )

    def __post_init__(self) -> None:
        ids = [_BYTES - 1, *self.special_tokens.values(), *self.special_tokens_dict.values()]
        if min(ids) < 0:
            raise ValueError(f"token id {min(ids)} is negative; ids start at 0, such as eod=256")
        needed = max(ids) + 1
        if 0 < self.vocab_size < needed:
            raise ValueError(
                f"vocab_size={self.vocab_size} does not hold the ids of this ByteTokenizer, whose "
                f"largest is {needed - 1}. Use vocab_size={needed} or more."
            )
        object.__setattr__(self, "vocab_size", self.vocab_size or needed)

    @property
    def eos(self) -> int:
        """Same as `eod`."""
        return self.eod

    @property
    def special_tokens_dict(self) -> dict[str, int]:
        """Role -> id."""
        roles = {"eos_token": self.eod, "pad_token": self.pad, "bos_token": self.bos}
        return {role: token for role, token in roles.items() if token is not None}

    @property
    def content_hash(self) -> str:
        """SHA-256 of the special tokens; bytes are always themselves."""
        content = json.dumps(["bytes", dict(self.special_tokens), self.special_tokens_dict])
        return hashlib.sha256(content.encode()).hexdigest()

    def encode(self, text: str) -> list[int]:
        """UTF-8 bytes of `text`.

        Raises:
            LoneSurrogateError: it has none.
        """
        return list(utf8(text))

    def encode_batch(
        self, texts: Sequence[str]
    ) -> tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " texts"]]:
        """Bytes of all texts, end to end, and how many each has.

        Raises:
            LoneSurrogateError: a text has no UTF-8 form; it says which.
        """
        encoded = [utf8(text, number) for number, text in enumerate(texts)]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        return np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.int32), lengths

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Text of the bytes among `ids`, U+FFFD where they are no UTF-8; other ids are left out."""
        array = np.fromiter(map(index, ids), dtype=np.int64)
        kept = array[(array >= 0) & (array < _BYTES)]
        return kept.astype(np.uint8).tobytes().decode("utf-8", errors="replace")

    def token_id(self, name: str) -> int | None:
        """Id of the special token `name`, None if there is none."""
        return self.special_tokens.get(name)
