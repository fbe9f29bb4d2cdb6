"""Calls of the `tokenizers` package that start no threads."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coredata._typing import Int32
from coredata.text.surrogates import lone_surrogate_error

_PARALLELISM = "TOKENIZERS_PARALLELISM"
_TOGETHER = 64


@contextlib.contextmanager
def one_encoding_thread() -> Iterator[None]:
    """Keep the `tokenizers` package from starting threads, in this process, for a while.

    Set by the package's environment variable; one that is set already is left as it is.
    """
    if _PARALLELISM in os.environ:
        yield
        return
    os.environ[_PARALLELISM] = "false"
    try:
        yield
    finally:
        os.environ.pop(_PARALLELISM, None)


def encode_one(native: Any, text: str, number: int | None = None) -> Any:
    """The `Encoding` of one text, nothing added.

    Args:
        native: a `tokenizers.Tokenizer`.
        text: what to encode.
        number: of the text in its batch, for the error.

    Raises:
        LoneSurrogateError: it has no UTF-8 form.
    """
    try:
        return native.encode(text, add_special_tokens=False)
    except TypeError as error:
        problem = lone_surrogate_error(text, number) if isinstance(text, str) else None
        raise problem or error from None


def encode_texts(native: Any, texts: Sequence[str]) -> list[Int32[np.ndarray, " tokens"]]:
    """Ids of each text, nothing added.

    Where the package's thread pool is off, without the offsets that nobody asks for: the call that
    leaves them out would start the pool elsewhere.

    Raises:
        LoneSurrogateError: a text has no UTF-8 form; it says which.
    """
    if not _one_thread_only():
        return _singly(native, texts)
    parts: list[np.ndarray] = []
    for start in range(0, len(texts), _TOGETHER):
        some = list(texts[start : start + _TOGETHER])
        try:
            encodings = native.encode_batch_fast(some, add_special_tokens=False)
        except TypeError:
            return _singly(native, texts)  # which says what is wrong with which text
        parts += [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]
    return parts


def _singly(native: Any, texts: Sequence[str]) -> list[np.ndarray]:
    return [
        np.array(encode_one(native, text, number).ids, dtype=np.int32)
        for number, text in enumerate(texts)
    ]


def _one_thread_only() -> bool:
    return os.environ.get(_PARALLELISM, "").lower() in ("false", "f", "0", "off", "no", "n")
