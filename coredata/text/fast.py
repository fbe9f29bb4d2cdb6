"""The `gigatoken` package, which encodes many times faster, where it gives the same ids.

It is used only behind a check: before the first text, on a sample (`accelerated`), and all the
time, on pieces of what it encodes (`GigatokenTokenizer`).
"""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex, final

import numpy as np

from coredata._typing import Int32, Int64
from coredata.text.fast_sample import probes
from coredata.text.native import NativeTokenizer
from coredata.text.protocol import Tokenizer
from coredata.text.surrogates import lone_surrogate_error

_CACHE_TEXT = 512 << 20
"""Characters after which the package's tokenizer is made anew: its caches grow without bound."""
_PIECE = 256
"""Characters of a batch that are encoded by both."""
_BATCHES_CHECKED = 16
"""The first batches, of each of which a piece is checked."""
_CHARACTERS_A_CHECK = 4 << 20
"""Of later ones, so much text that a piece of it is checked."""


class EncoderMismatchError(RuntimeError):
    """Two packages gave different ids for one text. Its text shows it and says what to do."""


@dataclass(frozen=True)
class Acceleration:
    """Which tokenizer to encode with.

    Attributes:
        tokenizer: the one to use; gives the ids of the one that was asked about.
        encoder: the package that encodes: "gigatoken", "tokenizers", or the tokenizer's class.
        reason: why it is not gigatoken; empty if it is.
    """

    tokenizer: Tokenizer
    encoder: str
    reason: str = ""


def accelerated(tokenizer: Tokenizer, sample: Sequence[str] = ()) -> Acceleration:
    """`tokenizer` with gigatoken as its encoder, if that is installed and gives the same ids.

    Compared are the texts of `sample`, texts that tokenizers are known to differ on, and each of
    the tokenizer's added tokens in the middle of text.

    Raises:
        LoneSurrogateError: a text of the sample has no UTF-8 form.
    """
    if isinstance(tokenizer, GigatokenTokenizer):
        return Acceleration(tokenizer, "gigatoken")
    if not isinstance(tokenizer, NativeTokenizer):
        name = type(tokenizer).__name__
        return Acceleration(tokenizer, name, f"a {name} encodes by itself")
    if tokenizer.splits_special_tokens:
        reason = "gigatoken cannot spell out special tokens that occur in text"
        return Acceleration(tokenizer, "tokenizers", reason)
    texts = [*probes(tokenizer.added_tokens), *sample]
    try:
        fast = GigatokenTokenizer(tokenizer)
        tokens, lengths = fast.encode_unchecked(texts)
    except ImportError as error:
        return Acceleration(tokenizer, "tokenizers", _not_imported(error))
    except RuntimeError as error:
        reason = f"gigatoken cannot do this tokenizer: {str(error).splitlines()[0]}"
        return Acceleration(tokenizer, "tokenizers", reason)
    expected, expected_lengths = tokenizer.encode_batch(texts)
    different = _first_difference(tokens, lengths, expected, expected_lengths)
    if different is not None:
        reason = f"gigatoken gives other ids for {_shown(texts[different])}"
        return Acceleration(tokenizer, "tokenizers", reason)
    return Acceleration(fast, "gigatoken")


def accelerated_once(tokenizer: Any) -> Any:
    """The tokenizer that `accelerated` finds, once for all who ask with the same object.

    Anything that does not run in the `tokenizers` package is given back as it is.
    """
    if not isinstance(tokenizer, NativeTokenizer):
        return tokenizer
    if tokenizer.faster is None:
        tokenizer.faster = accelerated(tokenizer).tokenizer
    return tokenizer.faster


@dataclass
class _Copy:
    """The package's tokenizer, if it is made; characters that it has seen; threads that use it."""

    backend: Any
    encoded: int = 0
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@final
class GigatokenTokenizer:
    """A tokenizer that encodes batches with gigatoken; all else is done by the one it is made of.

    Several threads may encode at once; each does its work in the calling thread and lets others
    run. The package's tokenizer lets one thread in at a time, so it takes `copies` of it for them
    not to wait for each other. A piece of each of the first batches, and then of every 4 million
    characters, is encoded by both packages, and must come out the same. Each copy keeps what it has
    seen for the sake of speed; it is made anew from time to time, so that memory does not grow with
    the amount of text.

    Args:
        tokenizer: gives the ids that are to come out; see `accelerated`.
        cache_text: characters after which a copy is made anew.
        copies: how many to make; each takes up to half a second, and memory.

    Raises:
        ImportError: gigatoken is not installed, or is broken.
        RuntimeError: it cannot do this kind of tokenizer.
    """

    def __init__(
        self, tokenizer: NativeTokenizer, cache_text: int = _CACHE_TEXT, copies: int = 1
    ) -> None:
        self._tokenizer = tokenizer
        self._cache_text = cache_text
        self._lock = threading.Lock()
        self._batches = self._unchecked = 0
        self._most = copies
        self._copies = [_Copy(self._make()) for _ in range(copies)]

    def __repr__(self) -> str:
        return f"GigatokenTokenizer({self._tokenizer!r})"

    def __getstate__(self) -> tuple[NativeTokenizer, int]:
        return self._tokenizer, self._cache_text

    def __setstate__(self, state: tuple[NativeTokenizer, int]) -> None:
        self._tokenizer, self._cache_text = state
        self._lock = threading.Lock()
        self._batches = self._unchecked = 0
        self._most = 1
        self._copies = [_Copy(None)]

    def allow_copies(self, copies: int) -> None:
        """Let threads that would wait for each other make more copies, up to `copies` in all."""
        with self._lock:
            self._most = max(self._most, copies)

    @property
    def tokenizer(self) -> NativeTokenizer:
        """The tokenizer that it is made of."""
        return self._tokenizer

    @property
    def eod(self) -> int | None:
        """Id that ends a document."""
        return self._tokenizer.eod

    @property
    def eos(self) -> int | None:
        """The configuration's `eos_token`, `eod` if it has none."""
        return self._tokenizer.eos

    @property
    def pad(self) -> int | None:
        """Id that fills up rows."""
        return self._tokenizer.pad

    @property
    def bos(self) -> int | None:
        """Id that starts a sequence."""
        return self._tokenizer.bos

    @property
    def vocab_size(self) -> int:
        """Largest id plus one."""
        return self._tokenizer.vocab_size

    @property
    def special_tokens_dict(self) -> Mapping[str, int]:
        """Role -> id."""
        return self._tokenizer.special_tokens_dict

    @property
    def unique_identifiers(self) -> Mapping[str, Any]:
        """Those of the tokenizer that it is made of: ids are the same."""
        return self._tokenizer.unique_identifiers

    @property
    def content_hash(self) -> str:
        """That of the tokenizer that it is made of: ids are the same."""
        return self._tokenizer.content_hash

    def encode(self, text: str) -> list[int]:
        """Ids of one text, nothing added.

        Raises:
            LoneSurrogateError: it has no UTF-8 form.
        """
        return self._tokenizer.encode(text)

    def encode_batch(
        self, texts: Sequence[str]
    ) -> tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " texts"]]:
        """Ids of all texts, end to end, and how many each has.

        Raises:
            LoneSurrogateError: a text has no UTF-8 form; it says which.
            EncoderMismatchError: the two packages give different ids.
        """
        encoded = self.encode_unchecked(texts)
        if texts and self._is_checked(texts):
            self._check_piece(texts[self._batches % len(texts)])
        return encoded

    def encode_unchecked(
        self, texts: Sequence[str]
    ) -> tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " texts"]]:
        """`encode_batch` without the check of a piece.

        Raises:
            LoneSurrogateError: a text has no UTF-8 form; it says which.
        """
        try:
            with self._copy(sum(map(len, texts))) as backend:
                layout = backend.encode_batch(list(texts), parallel=False).layout
        except TypeError as error:
            strings = ((i, text) for i, text in enumerate(texts) if isinstance(text, str))
            problems = (lone_surrogate_error(text, i) for i, text in strings)
            raise next((problem for problem in problems if problem), error) from None
        tokens: np.ndarray = layout.content.data
        offsets: np.ndarray = layout.offsets.data
        return tokens.view(np.int32), np.diff(offsets).astype(np.int64, copy=False)

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Text of `ids`, special tokens by their names; ids outside the vocabulary have no text."""
        return self._tokenizer.decode(ids)

    def token_id(self, name: str) -> int | None:
        """Id of the token written `name`, None if there is none."""
        return self._tokenizer.token_id(name)

    @contextlib.contextmanager
    def _copy(self, characters: int) -> Iterator[Any]:
        """The copy that fewest threads use, made anew where it has seen much text."""
        with self._lock:
            self._batches += 1
            copy = min(self._copies, key=lambda copy: copy.users)
            if copy.users and len(self._copies) < self._most:
                copy = _Copy(None)
                self._copies.append(copy)
            copy.users += 1
        try:
            with copy.lock:
                copy.encoded += characters
                if copy.backend is None or copy.encoded > self._cache_text:
                    copy.backend = self._make()
                    copy.encoded = characters
                backend = copy.backend
            yield backend
        finally:
            with self._lock:
                copy.users -= 1

    def _make(self) -> Any:
        from gigatoken import Tokenizer as Gigatoken

        return Gigatoken.from_json(self._tokenizer.serialized())

    def _is_checked(self, texts: Sequence[str]) -> bool:
        with self._lock:
            self._unchecked += sum(map(len, texts))
            due = self._batches <= _BATCHES_CHECKED or self._unchecked >= _CHARACTERS_A_CHECK
            if due:
                self._unchecked = 0
            return due

    def _check_piece(self, text: str) -> None:
        start = self._batches * _PIECE % max(len(text), 1)
        piece = text[start : start + _PIECE]
        found, _ = self.encode_unchecked([piece])
        expected = self._tokenizer.encode(piece)
        if found.tolist() != expected:
            raise EncoderMismatchError(
                f"gigatoken and tokenizers give different ids for {_shown(piece)} with "
                f"{self._tokenizer!r}: {found[:20].tolist()} and {expected[:20]}. Encode with "
                "tokenizers alone: encoder='tokenizers' in preprocess, or fim_encoder='tokenizers' "
                "in a configuration"
            )


def _not_imported(error: ImportError) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "gigatoken":
        return "gigatoken is not installed; pip install 'coredata[fast]'"
    cause = f"{type(error).__name__}: {error}".splitlines()[0]
    return (
        f"gigatoken is installed, but cannot be imported ({cause}); "
        "pip install --force-reinstall gigatoken"
    )


def _first_difference(
    tokens: np.ndarray, lengths: np.ndarray, expected: np.ndarray, expected_lengths: np.ndarray
) -> int | None:
    """Number of the first text whose ids differ."""
    if np.array_equal(lengths, expected_lengths) and np.array_equal(tokens, expected):
        return None
    ours = np.split(tokens, np.cumsum(lengths)[:-1])
    others = np.split(expected, np.cumsum(expected_lengths)[:-1])
    pairs = enumerate(zip(ours, others, strict=True))
    return next(number for number, (a, b) in pairs if not np.array_equal(a, b))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
