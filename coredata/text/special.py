"""Which id ends a document, pads a row, starts a sequence: found in a tokenizer's own files."""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coredata.storage import exists, join, read_bytes

_WELL_KNOWN = {
    "eos": (
        "<|endoftext|>",
        "<|end_of_text|>",
        "<｜end▁of▁sentence｜>",
        "<|end_of_document|>",
        "</s>",
        "<eos>",
        "[EOS]",
        "<EOD>",
    ),
    "pad": ("<|pad|>", "<pad>", "[PAD]", "<｜▁pad▁｜>", "<|padding|>", "<|finetune_right_pad_id|>"),
    "bos": ("<|startoftext|>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<s>", "<bos>"),
}
"""Names that mean only one thing, looked for among special tokens if no file says anything."""

_MASKING = {
    "cls": ("[CLS]", "<cls>"),
    "sep": ("[SEP]", "<sep>"),
    "mask": ("[MASK]", "<mask>"),
}
"""Names of the roles that BERT has beside these."""

_SENTINEL = re.compile(r"<extra_id_(\d+)>")
"""What T5's tokenizers call the tokens that stand for masked spans."""

_NAMING = ("tokenizer_config.json", "special_tokens_map.json")
_NUMBERING = "generation_config.json"


class SpecialTokenError(ValueError):
    """The files do not say, or say two things, or what was stated is not in the vocabulary."""


@dataclass(frozen=True)
class Vocabulary:
    """What the search asks about a vocabulary.

    Attributes:
        source: its file, for error texts.
        token_id: name -> id, or None.
        token: id -> name, or None.
        special: name -> id of the tokens marked special.
    """

    source: str
    token_id: Callable[[str], int | None]
    token: Callable[[int], str | None]
    special: Mapping[str, int]


@dataclass(frozen=True)
class SpecialTokens:
    """Ids by role; None where there is none.

    `roles` has all that the configuration names. `sentinels` stand for masked spans, in order.
    """

    eod: int | None
    eos: int | None
    pad: int | None
    bos: int | None
    roles: Mapping[str, int]
    sentinels: tuple[int, ...] = ()


def read_configuration(directory: str) -> dict[str, Mapping[str, Any]]:
    """The files beside a `tokenizer.json` that name its special tokens: file name -> content.

    Raises:
        SpecialTokenError: one of them is not a JSON object.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for name in (*_NAMING, _NUMBERING):
        path = join(directory, name)
        if not exists(path):
            continue
        try:
            content = json.loads(read_bytes(path))
        except ValueError as error:
            raise SpecialTokenError(f"{path} is not JSON: {error}") from None
        if not isinstance(content, dict):
            raise SpecialTokenError(
                f"{path} holds a {type(content).__name__}, not an object such as "
                '{"eos_token": "<|endoftext|>"}'
            )
        found[name] = content
    return found


def find_special_tokens(
    vocabulary: Vocabulary,
    configuration: Mapping[str, Mapping[str, Any]],
    *,
    eod: str | int | None = None,
    pad: str | int | None = None,
    bos: str | int | None = None,
) -> SpecialTokens:
    """Ids of the special tokens: what is stated, else what the files say, else well-known names.

    Digits in a string are an id ("0", from a command line), not the name of a token.

    The end of a document is the configuration's `eos_token`, as in the reference. For the
    tokenizer of a chat model that is often the end of a turn: state `eod` where it should not be.

    Raises:
        SpecialTokenError: a stated token that does not exist; two different answers for one role;
            an `eos_token` that is not in the vocabulary.
    """
    roles = _named_roles(vocabulary, configuration)
    if eod is None:
        eos = _find("eos", vocabulary, configuration)
        end = eos
    else:
        end = _stated("eod", eod, vocabulary)
        eos = roles.get("eos_token", end)
    padding = (
        _find("pad", vocabulary, configuration) if pad is None else _stated("pad", pad, vocabulary)
    )
    start = (
        _find("bos", vocabulary, configuration) if bos is None else _stated("bos", bos, vocabulary)
    )
    found = {"eos_token": eos, "pad_token": padding, "bos_token": start}
    roles.update({role: token for role, token in found.items() if token is not None})
    roles = {**_masking_roles(vocabulary), **roles}
    sentinels = _sentinels(vocabulary, configuration)
    return SpecialTokens(eod=end, eos=eos, pad=padding, bos=start, roles=roles, sentinels=sentinels)


def _stated(role: str, token: str | int, vocabulary: Vocabulary) -> int:
    if isinstance(token, int):
        if token >= 0 and vocabulary.token(token) is not None:
            return token
        raise SpecialTokenError(
            f"{role}={token} is not an id of {vocabulary.source}. Its special tokens: "
            f"{_listed(vocabulary)}."
        )
    if token.isascii() and token.isdigit():
        return _stated(role, int(token), vocabulary)
    found = vocabulary.token_id(token)
    if found is not None:
        return found
    near = difflib.get_close_matches(token, vocabulary.special, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise SpecialTokenError(
        f"{role}={token!r} is not a token of {vocabulary.source}. {hint}Its special tokens: "
        f"{_listed(vocabulary)}."
    )


def _find(
    role: str, vocabulary: Vocabulary, configuration: Mapping[str, Mapping[str, Any]]
) -> int | None:
    """The id of `role` by the first kind of evidence that there is."""
    for evidence in (_named, _numbered, _well_known):
        found = evidence(role, vocabulary, configuration)
        if len(set(found.values())) > 1:
            argument = "eod" if role == "eos" else role
            answers = ", ".join(f"{token} ({where})" for where, token in found.items())
            raise SpecialTokenError(
                f"{vocabulary.source} has more than one {role} token: {answers}. Say which is "
                f"meant, for example {argument}={next(iter(found.values()))}."
            )
        if found:
            return next(iter(found.values()))
    return None


def _named(
    role: str, vocabulary: Vocabulary, configuration: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    found = {}
    for file in _NAMING:
        name = _name(configuration.get(file, {}).get(f"{role}_token"))
        if name is None:
            continue
        token = vocabulary.token_id(name)
        if token is not None:
            found[f"{name} in {file}"] = token
        elif role == "eos":
            raise SpecialTokenError(
                f"{file} says that the eos token is {name!r}, which is not in "
                f"{vocabulary.source}. Say which token ends a document with eod=…; its special "
                f"tokens: {_listed(vocabulary)}."
            )
    return found


def _numbered(
    role: str, vocabulary: Vocabulary, configuration: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    value = configuration.get(_NUMBERING, {}).get(f"{role}_token_id")
    ids = value if isinstance(value, list) else [value]
    return {
        f"{vocabulary.token(token)} in {_NUMBERING}": token
        for token in ids
        if isinstance(token, int) and token >= 0 and vocabulary.token(token) is not None
    }


def _well_known(
    role: str, vocabulary: Vocabulary, configuration: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    return {
        name: vocabulary.special[name] for name in _WELL_KNOWN[role] if name in vocabulary.special
    }


def _masking_roles(vocabulary: Vocabulary) -> dict[str, int]:
    """cls, sep and mask by well-known names; none where two names of a role are taken."""
    found = {}
    for role, names in _MASKING.items():
        ids = [vocabulary.special[name] for name in names if name in vocabulary.special]
        if len(ids) == 1:
            found[f"{role}_token"] = ids[0]
    return found


def _sentinels(
    vocabulary: Vocabulary, configuration: Mapping[str, Mapping[str, Any]]
) -> tuple[int, ...]:
    """The tokens named <extra_id_0>, <extra_id_1>, …, else additional ones that a file lists."""
    numbered = {
        int(match[1]): token
        for name, token in vocabulary.special.items()
        if (match := _SENTINEL.fullmatch(name))
    }
    if numbered:
        return tuple(numbered[number] for number in sorted(numbered))
    for file in _NAMING:
        listed = configuration.get(file, {}).get("additional_special_tokens")
        names = [_name(value) for value in listed] if isinstance(listed, list) else []
        ids = [vocabulary.token_id(name) for name in names if name is not None]
        if ids:
            return tuple(token for token in ids if token is not None)
    return ()


def _named_roles(
    vocabulary: Vocabulary, configuration: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    """Every `*_token` of the configuration that is in the vocabulary."""
    roles = {}
    for file in reversed(_NAMING):
        for key, value in configuration.get(file, {}).items():
            name = _name(value) if key.endswith("_token") else None
            token = None if name is None else vocabulary.token_id(name)
            if token is not None:
                roles[key] = token
    return roles


def _name(value: object) -> str | None:
    """The token's text: configuration files write it plainly or as an object with `content`."""
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _listed(vocabulary: Vocabulary) -> str:
    names = sorted(vocabulary.special.items(), key=lambda item: item[1])
    shown = ", ".join(f"{name} {token}" for name, token in names[:12])
    return (shown + (", …" if len(names) > 12 else "")) or "none"
