"""What tells one dataset from another: descriptions, their hashes, and fingerprints.

A description is the JSON text of a dataset's identifiers; its MD5 names the files of its index
cache. Both follow the reference to the letter, so that a cache written by one is found by the
other.
"""

import hashlib
import json
import marshal
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np

from coredata._typing import Integer

KEY_CONFIG_ATTRIBUTES = ("random_seed", "sequence_length", "split", "split_matrix", "tokenizer")
"""Fields of the configuration that the reference puts into a description, in its order."""

SPECIAL_IDS = "special_ids"
"""The entry of a fingerprint that holds end and pad ids. Fingerprints did not always have it, so it
stands beside digests and is in none; a state without it is taken (`coredata.loading.state`)."""


def describe(
    identifiers: Mapping[str, Any], described: Sequence[tuple[dict[str, Any], str]] = ()
) -> str:
    """The JSON text of `identifiers`; an object in it stands for its `unique_identifiers`.

    Args:
        identifiers: what to describe.
        described: dictionaries in it whose text is known already, with that.

    Raises:
        TypeError: a value that is neither JSON nor has `unique_identifiers`.
    """
    return _text(dict(identifiers), "\n", {(id(known), "\n"): (known, t) for known, t in described})


def _text(value: Any, newline: str, written: dict[tuple[int, str], tuple[Any, str]]) -> str:
    """What `json.dumps(value, indent=4, default=…)` writes, without its generator per element.

    A builder describes thousands of datasets, and its blends all of them again.

    Args:
        value: JSON, or an object with `unique_identifiers`.
        newline: a line break and the indentation of the line that `value` stands on.
        written: lists and objects that may stand in many places with their texts, by identity.
            (They are kept, lest another that is made meanwhile be taken for one.)
    """
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is int or (kind is float and math.isfinite(value)):
        return repr(value)
    if kind is dict:
        known = written.get((id(value), "\n"))
        if known is not None:
            return known[1].replace("\n", newline)
        text = _short(value, newline) or _object(value, newline, written)
        if text is not None:
            return text
    known = written.get((id(value), newline))
    if known is not None:
        return known[1]
    if kind is list or kind is tuple:
        text = _short(value, newline)
        if text is None:
            inner = newline + "    "
            items = [_text(item, inner, written) for item in value]
            text = "[" + inner + f",{inner}".join(items) + newline + "]" if items else "[]"
    elif value is None or isinstance(value, dict | list | tuple | str | int | float):
        text = json.dumps(value, indent=4, default=_identifiers_of).replace("\n", newline)
    else:
        text = _text(_identifiers_of(value), newline, written)
    written[id(value), newline] = (value, text)
    return text


def _object(
    value: dict[Any, Any], newline: str, written: dict[tuple[int, str], tuple[Any, str]]
) -> str | None:
    """The text of a dictionary; None if a key is no text."""
    inner = newline + "    "
    lines = []
    for key, of in value.items():
        if type(key) is not str:
            return None
        # The commonest kinds without a call.
        kind = type(of)
        if kind is str:
            text = encode_basestring_ascii(of)
        elif kind is int:
            text = repr(of)
        else:
            text = _text(of, inner, written)
        lines.append(f"{encode_basestring_ascii(key)}: {text}")
    return "{" + inner + f",{inner}".join(lines) + newline + "}" if lines else "{}"


def _short(value: dict[Any, Any] | list[Any] | tuple[Any, ...], newline: str) -> str | None:
    """The text of a few plain values that hardly ever change: a split matrix, or a tokenizer's."""
    if len(value) > _SHORT:
        return None
    try:
        return _short_text(marshal.dumps(value), newline)
    except (TypeError, ValueError):  # there is something in it that is no plain value
        return None


@lru_cache(maxsize=64)
def _short_text(value: bytes, newline: str) -> str:
    return json.dumps(marshal.loads(value), indent=4).replace("\n", newline)


_SHORT = 8


def description_hash(description: str) -> str:
    """MD5 of a description, in hexadecimal. It is a name, not a safeguard."""
    return hashlib.md5(description.encode("utf-8"), usedforsecurity=False).hexdigest()


def _identifiers_of(value: Any) -> Any:
    identifiers = getattr(value, "unique_identifiers", None)
    if identifiers is None:
        raise TypeError(
            f"a dataset is identified by JSON values and by objects with unique_identifiers; got "
            f"{value!r} of type {type(value).__name__}. Give the tokenizer unique_identifiers, "
            'such as {"class": "MyTokenizer"}'
        )
    return identifiers


def documents_fingerprint(documents: Integer[np.ndarray, " documents"]) -> str:
    """Which documents: "100:900" for a range, else their count and a digest."""
    span = as_range(documents)
    if span is not None:
        return f"{span[0]}:{span[1]}"
    content = np.ascontiguousarray(documents, dtype="<i8").tobytes()
    return f"{len(documents)} documents, {hashlib.sha256(content).hexdigest()[:16]}"


def as_range(documents: Integer[np.ndarray, " documents"]) -> tuple[int, int] | None:
    """(begin, end) if the documents are begin, begin + 1, …, end − 1, else None."""
    if len(documents) == 0:
        return (0, 0)
    begin, end = int(documents[0]), int(documents[-1]) + 1
    if end - begin != len(documents) or not np.all(documents[1:] == documents[:-1] + 1):
        return None
    return (begin, end)


def pack_documents(documents: Integer[np.ndarray, " documents"]) -> Any:
    """A small stand-in for `documents` in a pickle: a range by its ends, else the array."""
    span = as_range(documents)
    return documents if span is None else (*span, documents.dtype.str)


def unpack_documents(packed: Any) -> Integer[np.ndarray, " documents"]:
    """The documents that `pack_documents` stood in for."""
    if not isinstance(packed, tuple):
        return packed
    begin, end, dtype = packed
    return np.arange(begin, end, dtype=dtype)
