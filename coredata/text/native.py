"""What all tokenizers share that run in the `tokenizers` package."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from coredata._typing import Int32, Int64
from coredata.text.native_batch import encode_one, encode_texts
from coredata.text.protocol import Tokenizer
from coredata.text.special import SpecialTokens, Vocabulary, find_special_tokens


class TokenizerFileError(ValueError):
    """A file is not the tokenizer file it should be."""


class NativeTokenizer(ABC):
    """A tokenizer built from files, which are read again in every process that gets a copy.

    Texts are encoded in the calling thread: the package's own thread pool is never started, so
    that processes can be forked at any time without a warning or a dead lock. Where the pool is
    switched off anyway (`TOKENIZERS_PARALLELISM=false`, as in `one_encoding_thread`), batches are
    encoded faster, by a call of the package that would start it elsewhere.
    """

    def __init__(
        self,
        source: str,
        *,
        eod: str | int | None,
        pad: str | int | None,
        bos: str | int | None,
        unique_identifiers: Mapping[str, Any] | None,
        split_special_tokens: bool,
    ) -> None:
        self._source = source
        self._split_special_tokens = split_special_tokens
        self._identifiers = unique_identifiers
        self._vocab_size: int | None = None
        self.faster: Tokenizer | None = None
        content = self._read()
        self._content_hash = self._hash(content)
        self._native: Any = self._open(content)
        self._special: SpecialTokens = find_special_tokens(
            self._vocabulary(), self._configuration(), eod=eod, pad=pad, bos=bos
        )

    @abstractmethod
    def _read(self) -> Sequence[bytes]:
        """The content of the files."""

    @abstractmethod
    def _build(self, content: Sequence[bytes]) -> Any:
        """A `tokenizers.Tokenizer` of the content of the files."""

    @abstractmethod
    def _configuration(self) -> Mapping[str, Mapping[str, Any]]:
        """What files beside these say about special tokens."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._source!r}, eod={self.eod}, pad={self.pad})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None, "faster": None}

    @property
    def eod(self) -> int | None:
        """Id that ends a document."""
        return self._special.eod

    @property
    def eos(self) -> int | None:
        """The configuration's `eos_token`, `eod` if it has none."""
        return self._special.eos

    @property
    def pad(self) -> int | None:
        """Id that fills up rows."""
        return self._special.pad

    @property
    def bos(self) -> int | None:
        """Id that starts a sequence."""
        return self._special.bos

    @property
    def cls(self) -> int | None:
        """Id that starts a sample of BERT."""
        return self._special.roles.get("cls_token")

    @property
    def sep(self) -> int | None:
        """Id that ends a segment of BERT."""
        return self._special.roles.get("sep_token")

    @property
    def mask(self) -> int | None:
        """Id that stands for a masked token."""
        return self._special.roles.get("mask_token")

    @property
    def additional_special_tokens_ids(self) -> list[int]:
        """Ids that stand for masked spans of T5, in order: <extra_id_0>, <extra_id_1>, …"""
        return list(self._special.sentinels)

    @property
    def inv_vocab(self) -> dict[int, str]:
        """Id -> token as the vocabulary writes it, all tokens, ascending by id."""
        tokens = self._opened().get_vocab(with_added_tokens=True)
        return {number: token for token, number in sorted(tokens.items(), key=lambda t: t[1])}

    @property
    def vocab_size(self) -> int:
        """Largest id plus one; ids may have gaps, so this is not the number of tokens."""
        if self._vocab_size is None:
            ids = self._opened().get_vocab(with_added_tokens=True).values()
            self._vocab_size = max(ids, default=-1) + 1
        return self._vocab_size

    @property
    def special_tokens_dict(self) -> dict[str, int]:
        """Role -> id."""
        return dict(self._special.roles)

    @property
    def unique_identifiers(self) -> dict[str, Any]:
        """What goes into the names of index caches: class and content, or what was given."""
        if self._identifiers is not None:
            return dict(self._identifiers)
        return {"class": type(self).__name__, "content_hash": self._content_hash}

    @property
    def content_hash(self) -> str:
        """SHA-256 of the files (and of the one option that changes what they do)."""
        return self._content_hash

    def encode(self, text: str) -> list[int]:
        """Ids of one text, nothing added.

        Raises:
            LoneSurrogateError: it has no UTF-8 form.
        """
        return encode_one(self._opened(), text).ids

    def encode_batch(
        self, texts: Sequence[str]
    ) -> tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " texts"]]:
        """Ids of all texts, end to end, and how many each has.

        Memory: 4 bytes a token, twice while they are joined, and some hundred bytes a token of
        the longest text.

        Raises:
            LoneSurrogateError: a text has no UTF-8 form; it says which.
        """
        parts = encode_texts(self._opened(), texts)
        lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
        return np.concatenate([np.empty(0, dtype=np.int32), *parts]), lengths

    def encode_with_offsets(
        self, text: str
    ) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, "tokens 2"]]:
        """Ids of one text, and the characters (start, stop) that each comes from.

        Raises:
            LoneSurrogateError: it has no UTF-8 form.
        """
        encoding = encode_one(self._opened(), text)
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        return np.array(encoding.ids, dtype=np.int64), offsets

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Text of `ids`, special tokens by their names; ids outside the vocabulary have no text."""
        known = [token for token in map(index, ids) if token >= 0]
        return self._opened().decode(known, skip_special_tokens=False)

    def token_id(self, name: str) -> int | None:
        """Id of the token written `name`, None if there is none."""
        return self._opened().token_to_id(name)

    @property
    def splits_special_tokens(self) -> bool:
        """Whether special tokens that occur in text are spelled out."""
        return self._split_special_tokens

    @property
    def added_tokens(self) -> list[str]:
        """Texts of the tokens beside the model's own, special or not, by id."""
        added = self._opened().get_added_tokens_decoder().items()
        return [token.content for _, token in sorted(added, key=lambda item: item[0])]

    def serialized(self) -> str:
        """The content of a `tokenizer.json` for this tokenizer, without truncation and padding."""
        return self._opened().to_str()

    @property
    def special_vocabulary(self) -> dict[str, int]:
        """Text -> id of all tokens that the files mark special, whatever their role."""
        return dict(self._vocabulary().special)

    def _vocabulary(self) -> Vocabulary:
        native = self._opened()
        added = native.get_added_tokens_decoder().items()
        special = {token.content: number for number, token in added if token.special}
        return Vocabulary(self._source, native.token_to_id, native.id_to_token, special)

    def _opened(self) -> Any:
        """The package's tokenizer; after unpickling, the files are read anew, and must be the same.

        Raises:
            TokenizerFileError: they have changed.
        """
        if self._native is None:
            content = self._read()
            found = self._hash(content)
            if found != self._content_hash:
                raise TokenizerFileError(
                    f"{self._source} has changed since this tokenizer was made: SHA-256 was "
                    f"{self._content_hash[:12]}…, is {found[:12]}…. Make the tokenizer anew; "
                    "token files written with both would not fit together."
                )
            self._native = self._open(content)
        return self._native

    def _open(self, content: Sequence[bytes]) -> Any:
        native = self._build(content)
        native.no_truncation()
        native.no_padding()
        native.encode_special_tokens = self._split_special_tokens
        return native

    def _hash(self, content: Sequence[bytes]) -> str:
        digest = hashlib.sha256()
        for file in content:
            digest.update(file)
        if self._split_special_tokens:
            digest.update(b"split_special_tokens")
        return digest.hexdigest()
