"""End and pad ids as samples use them, read from any tokenizer by its shape."""

import warnings
from dataclasses import dataclass
from typing import Any

NO_ID = -1
"""Stands for an id that is not in any vocabulary."""


@dataclass(frozen=True)
class SpecialIds:
    """Ids that samples need.

    Attributes:
        eod: end of document, or -1.
        pad: padding, or -1 where the tokenizer has none or it means something else as well.
    """

    eod: int
    pad: int


def read_attribute(tokenizer: Any, name: str) -> Any:
    """Attribute `name`, or None where a tokenizer lacks it or says that it does not have one."""
    try:
        return getattr(tokenizer, name)
    except (AttributeError, NotImplementedError):
        return None


def special_ids(tokenizer: Any, allow_ambiguous_pad_tokens: bool = False) -> SpecialIds:
    """Read end and pad ids; -1 for a pad id that is also another special id.

    Padding bears no loss. If the pad id were also, say, the end-of-document id, then real end
    tokens would bear no loss either, and a model would not learn to stop.

    Warns:
        UserWarning: the pad id is also another special id.
    """
    eod = read_attribute(tokenizer, "eod")
    pad = read_attribute(tokenizer, "pad")
    others = {} if pad is None else _other_ids(tokenizer, eod)
    shared = [name for name, number in others.items() if number == pad]
    if shared:
        used = pad if allow_ambiguous_pad_tokens else NO_ID
        effect = (
            "so every such token is taken for padding and bears no loss "
            "(allow_ambiguous_pad_tokens=True)"
            if allow_ambiguous_pad_tokens
            else "so -1 is used instead and no token of the data is taken for padding. Give a "
            "tokenizer with a pad id of its own, or allow_ambiguous_pad_tokens=True"
        )
        warnings.warn(
            f"the pad id {pad} of {type(tokenizer).__name__} is also its {', '.join(shared)}, "
            f"{effect}",
            UserWarning,
            stacklevel=3,
        )
        pad = used
    return SpecialIds(
        eod=NO_ID if eod is None else int(eod), pad=NO_ID if pad is None else int(pad)
    )


def _other_ids(tokenizer: Any, eod: Any) -> dict[str, Any]:
    eos, bos = read_attribute(tokenizer, "eos"), read_attribute(tokenizer, "bos")
    ids = {"eod": eod, "eos": eos, "bos": bos}
    for name, value in (read_attribute(tokenizer, "special_tokens_dict") or {}).items():
        if name not in ("pad", "pad_token"):
            ids.setdefault(name, value)
    return ids
