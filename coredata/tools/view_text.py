"""Tokens as text: the smallest groups of them that decode to whole characters."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from coredata.datasets.special_ids import read_attribute

_LONGEST = 16
"""Tokens of a group at most; what is then still no whole character is shown as U+FFFD."""
_UNFINISHED = "�"
_KNOWN = (
    *("<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<file_sep>"),
    *("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"),
)
"""Tokens that tokenizers may have without a text and without a role."""


@dataclass(frozen=True)
class Unit:
    """Tokens that are shown together.

    Attributes:
        begin: place of the first in its row of tokens.
        end: the place after the last.
        text: what they decode to; of a special token, its name.
        special: whether it is a special token, and `text` its name.
    """

    begin: int
    end: int
    text: str
    special: bool


def special_names(tokenizer: Any) -> dict[int, str]:
    """What special tokens are called: by their text where they have one, else by their role."""
    named: dict[int, str] = {}
    roles: Mapping[str, int] = read_attribute(tokenizer, "special_tokens_dict") or {}
    ids = {role.removesuffix("_token"): number for role, number in roles.items()}
    for role in ("pad", "eod", "eos", "bos", "cls", "sep", "mask"):
        number = read_attribute(tokenizer, role)
        if number is not None:
            ids.setdefault(role, number)
    find = read_attribute(tokenizer, "token_id")
    for name in _KNOWN if find is not None else ():
        number = find(name)
        if number is not None:
            ids.setdefault(name, number)
    for role, number in ids.items():
        named.setdefault(int(number), tokenizer.decode([int(number)]) or role)
    return named


def text_units(tokens: Sequence[int], tokenizer: Any, breaks: Set[int] = frozenset()) -> list[Unit]:
    """Cut a row of tokens into units; none reaches over a place in `breaks`.

    What a token adds to the text is found by decoding it together with the unit before it: many
    tokenizers write a word's blank only when another word is before it.
    """
    names = special_names(tokenizer)
    units: list[Unit] = []
    context, begin = 0, 0
    for place, token in enumerate(tokens):
        alone = int(token) in names
        if begin < place and (place in breaks or alone):
            units.append(_unit(tokens, tokenizer, context, begin, place))
            context, begin = begin, place
        if alone:
            units.append(Unit(place, place + 1, names[int(token)], True))
            context, begin = place, place + 1
            continue
        unit = _unit(tokens, tokenizer, context, begin, place + 1)
        if not unit.text.endswith(_UNFINISHED) or unit.end - unit.begin == _LONGEST:
            units.append(unit)
            context, begin = begin, place + 1
    if begin < len(tokens):
        units.append(_unit(tokens, tokenizer, context, begin, len(tokens)))
    return units


def _unit(tokens: Sequence[int], tokenizer: Any, context: int, begin: int, end: int) -> Unit:
    before = tokenizer.decode(tokens[context:begin]) if context < begin else ""
    whole = tokenizer.decode(tokens[context:end])
    text = whole[len(before) :]
    if (whole and text) or end - begin > 1:
        return Unit(begin, end, text, False)
    # A token without a text of its own, which its tokenizer does not list as special.
    return Unit(begin, end, text or f"{int(tokens[begin])}", not text)
