"""Special ids and the vocabulary, as masking uses them, read from any tokenizer by its shape."""

from collections.abc import Mapping
from typing import Any

from coredata.datasets.special_ids import NO_ID, read_attribute
from coredata.masking import WORDPIECE_MARK, BertIds, T5Ids

_KNOWN_STARTS = ("▁", "Ġ")


def bert_ids(tokenizer: Any, pad: int) -> BertIds:
    """The ids of BERT samples.

    Raises:
        ValueError: a tokenizer without cls, sep or mask; it names those that are missing.
    """
    found = _required(tokenizer, "BERT", ("cls", "sep", "mask"))
    return BertIds(pad=pad, **found)


def t5_ids(tokenizer: Any, pad: int) -> T5Ids:
    """The ids of T5 samples. A tokenizer need not have cls, sep and mask.

    Raises:
        ValueError: a tokenizer without bos or eos, or without sentinels.
    """
    found = _required(tokenizer, "T5", ("bos", "eos"))
    sentinels = read_attribute(tokenizer, "additional_special_tokens_ids")
    if sentinels is None or not len(sentinels):
        raise ValueError(
            f"tokenizer: {type(tokenizer).__name__} has no sentinels for masked spans "
            "(additional_special_tokens_ids). Give one with the special tokens <extra_id_0>, "
            "<extra_id_1>, …; a hundred are usual"
        )
    for role in ("cls", "sep", "mask"):
        number = _role(tokenizer, role)
        found[role] = NO_ID if number is None else number
    return T5Ids(pad=pad, sentinels=tuple(int(number) for number in sentinels), **found)


def vocabulary(tokenizer: Any) -> Mapping[int, str]:
    """Id -> text of all tokens: the tokenizer's `inv_vocab`.

    Raises:
        ValueError: it has none.
    """
    found = read_attribute(tokenizer, "inv_vocab")
    if not found:
        raise ValueError(
            f"tokenizer: {type(tokenizer).__name__} has no inv_vocab (id -> text of a token), "
            "which masking needs. coredata.load_tokenizer(model='tokenizer.json') gives one that "
            "has"
        )
    return found


def check_full_words(tokenizer: Any, word_start: str | None) -> None:
    """Refuse a vocabulary that does not tell where words begin.

    Raises:
        ValueError: no piece has the mark; it says which marks there are.
    """
    pieces = vocabulary(tokenizer).values()
    mark = WORDPIECE_MARK if word_start is None else word_start
    if any(piece.startswith(mark) for piece in pieces):
        return
    name = f"none of the {len(pieces)} tokens of {type(tokenizer).__name__} starts with {mark!r}"
    for other in _KNOWN_STARTS:
        count = sum(piece.startswith(other) for piece in pieces)
        if count:
            raise ValueError(
                f"masking_do_full_word: it is on, but {name}. {count} start with {other!r}: set "
                f"masking_word_start={other!r}, or masking_do_full_word=False"
            )
    known = any(piece.startswith(WORDPIECE_MARK) for piece in pieces)
    hint = "masking_word_start=None (WordPiece)" if known else "a WordPiece tokenizer"
    raise ValueError(
        f"masking_do_full_word: it is on, but {name}, so that words cannot be told from their "
        f"pieces. Give {hint}, or masking_do_full_word=False"
    )


def _required(tokenizer: Any, model: str, roles: tuple[str, ...]) -> dict[str, int]:
    found = {role: _role(tokenizer, role) for role in roles}
    missing = [role for role, number in found.items() if number is None]
    if missing:
        raise ValueError(
            f"tokenizer: {model} needs {', '.join(roles)}, but {type(tokenizer).__name__} has no "
            f"{' and no '.join(missing)}. {_ADVICE[model]}"
        )
    return {role: number for role, number in found.items() if number is not None}


_ADVICE = {
    "BERT": "Give a tokenizer with special tokens such as [CLS], [SEP] and [MASK], or name them "
    "in the tokenizer_config.json beside it (cls_token, sep_token, mask_token)",
    "T5": "State them, for example load_tokenizer(…, bos='[CLS]', eod='[SEP]') for a BERT "
    "vocabulary, or name them in the tokenizer_config.json beside it (bos_token, eos_token)",
}


def _role(tokenizer: Any, role: str) -> int | None:
    number = read_attribute(tokenizer, role)
    if number is None:
        number = (read_attribute(tokenizer, "special_tokens_dict") or {}).get(f"{role}_token")
    return None if number is None else int(number)
