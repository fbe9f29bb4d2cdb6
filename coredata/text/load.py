"""From a tokenizer's type and files, as command lines name them, to the tokenizer."""

import difflib
import os.path
from collections.abc import Mapping
from typing import Any

from coredata.storage import exists, join
from coredata.text.byte import ByteTokenizer
from coredata.text.gpt2 import GPT2BPETokenizer
from coredata.text.null import NullTokenizer
from coredata.text.protocol import Tokenizer
from coredata.text.tokenizer_json import TokenizerJson

TOKENIZER_TYPES = (
    "HuggingFaceTokenizer",
    "GPT2BPETokenizer",
    "ByteLevelTokenizer",
    "ByteTokenizer",
    "NullTokenizer",
)
"""What `load_tokenizer` makes; names as in the reference, but for `ByteTokenizer`."""

_ELSEWHERE = (
    "SentencePieceTokenizer",
    "GPTSentencePieceTokenizer",
    "Llama2Tokenizer",
    "TikTokenizer",
    "BertWordPieceLowerCase",
    "BertWordPieceCase",
    "MultimodalTokenizer",
    "SFTTokenizer",
)
"""Types of the reference whose files have to be converted to a tokenizer.json first."""

_CONVERT = (
    "Convert it to a tokenizer.json (transformers' AutoTokenizer.from_pretrained(…)"
    ".save_pretrained(directory) writes one) and use HuggingFaceTokenizer."
)


class TokenizerChoiceError(ValueError):
    """Type and files do not say which tokenizer to load, or contradict each other."""


def load_tokenizer(
    type: str | None = None,
    model: str | None = None,
    vocab_file: str | None = None,
    merge_file: str | None = None,
    *,
    eod: str | int | None = None,
    pad: str | int | None = None,
    bos: str | int | None = None,
    vocab_size: int | None = None,
    unique_identifiers: Mapping[str, Any] | None = None,
    split_special_tokens: bool = False,
) -> Tokenizer:
    """The tokenizer of a type (guessed from the files when None).

    * `HuggingFaceTokenizer`: `model` is a `tokenizer.json` or a directory with one.
    * `GPT2BPETokenizer`: `vocab_file` and `merge_file`, or `model`, a directory with `vocab.json`
      and `merges.txt`.
    * `ByteLevelTokenizer`: bytes; eod 0, pad 1, 512 ids unless told otherwise, as in the reference.
    * `ByteTokenizer`: bytes; special tokens from 256 on, so that none is also a byte.
    * `NullTokenizer`: numbers below `vocab_size`.

    Args:
        type: one of the above, or None.
        model: a file or directory, local or a URL.
        vocab_file: GPT-2's vocabulary.
        merge_file: GPT-2's merges.
        eod: name or id of the token that ends a document, instead of the one found.
        pad: likewise for padding.
        bos: likewise for the start.
        vocab_size: for the types without files.
        unique_identifiers: what goes into the names of index caches, instead of class and hash.
        split_special_tokens: spell out special tokens that occur in text.

    Raises:
        TokenizerChoiceError: unknown type, or too few, too many or the wrong files for it.
        FileNotFoundError: a file is missing.
        ValueError: as the tokenizer's own class says.
    """
    kind = guess_type(model, vocab_file, merge_file) if type is None else _known_type(type)
    options: dict[str, Any] = {"eod": eod, "pad": pad, "bos": bos}
    if kind in ("HuggingFaceTokenizer", "GPT2BPETokenizer"):
        options["unique_identifiers"] = unique_identifiers
        options["split_special_tokens"] = split_special_tokens
        if kind == "GPT2BPETokenizer":
            return GPT2BPETokenizer(*_gpt2_files(model, vocab_file, merge_file), **options)
        return TokenizerJson(_tokenizer_json(model), **options)
    if model or vocab_file or merge_file:
        given = model or vocab_file or merge_file
        raise TokenizerChoiceError(
            f"{kind} has no files, but {given} is given. Leave it out, or leave out the type to "
            "have it guessed from the files."
        )
    if kind == "NullTokenizer":
        return _null(vocab_size, options, unique_identifiers)
    return _bytes(kind, vocab_size, options, unique_identifiers)


def guess_type(model: str | None, vocab_file: str | None, merge_file: str | None) -> str:
    """The tokenizer type that the given files are of.

    Raises:
        TokenizerChoiceError: nothing is given, or nothing that could be read here.
        FileNotFoundError: `model` does not exist.
    """
    if model is None and (vocab_file or merge_file):
        return "GPT2BPETokenizer"
    if model is None:
        raise TokenizerChoiceError(
            "which tokenizer? Give a tokenizer.json as model, GPT-2's vocab_file and merge_file, "
            f"or a type that needs no files: {', '.join(TOKENIZER_TYPES[2:])}"
        )
    if not exists(model):
        raise FileNotFoundError(
            f"tokenizer {model} does not exist here; it should be a tokenizer.json or a directory "
            "with one (nothing is downloaded from model hubs)"
        )
    if model.endswith((".model", ".tiktoken")):
        raise TokenizerChoiceError(f"{model} is of a format that is not read here. {_CONVERT}")
    if exists(join(model, "vocab.json")) and not exists(join(model, "tokenizer.json")):
        return "GPT2BPETokenizer"
    return "HuggingFaceTokenizer"


def _known_type(type: str) -> str:
    if type in TOKENIZER_TYPES:
        return type
    if type in _ELSEWHERE:
        raise TokenizerChoiceError(f"tokenizer type {type} is not read here. {_CONVERT}")
    lower = {name.lower(): name for name in TOKENIZER_TYPES}
    near = [lower[name] for name in difflib.get_close_matches(type.lower(), lower, n=2)]
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise TokenizerChoiceError(
        f"unknown tokenizer type {type!r}. {hint}There are {', '.join(TOKENIZER_TYPES)}."
    )


def _tokenizer_json(model: str | None) -> str:
    if model is None:
        raise TokenizerChoiceError(
            "HuggingFaceTokenizer needs model: a tokenizer.json or a directory with one"
        )
    path = model if os.path.basename(model).endswith(".json") else join(model, "tokenizer.json")
    if not exists(path):
        raise FileNotFoundError(
            f"there is no {path}; model should be a tokenizer.json or a directory with one"
        )
    return path


def _gpt2_files(
    model: str | None, vocab_file: str | None, merge_file: str | None
) -> tuple[str, str]:
    if model is not None and vocab_file is None and merge_file is None:
        return join(model, "vocab.json"), join(model, "merges.txt")
    if model is not None or vocab_file is None or merge_file is None:
        given = {"model": model, "vocab_file": vocab_file, "merge_file": merge_file}
        named = ", ".join(f"{name}={path}" for name, path in given.items() if path is not None)
        raise TokenizerChoiceError(
            f"GPT2BPETokenizer needs vocab_file and merge_file, or model alone (a directory with "
            f"vocab.json and merges.txt); got {named or 'none of them'}"
        )
    return vocab_file, merge_file


def _null(
    vocab_size: int | None, options: Mapping[str, Any], identifiers: Mapping[str, Any] | None
) -> NullTokenizer:
    if vocab_size is None:
        raise TokenizerChoiceError("NullTokenizer needs vocab_size, for example 50257")
    stated = [role for role, token in options.items() if token is not None]
    if stated:
        raise TokenizerChoiceError(
            f"NullTokenizer ends documents with the id vocab_size ({vocab_size}) and has no other "
            f"special tokens; leave out {', '.join(stated)}"
        )
    return NullTokenizer(vocab_size, unique_identifiers=identifiers)


def _bytes(
    kind: str,
    vocab_size: int | None,
    options: Mapping[str, Any],
    identifiers: Mapping[str, Any] | None,
) -> ByteTokenizer:
    template = ByteTokenizer()
    if kind == "ByteLevelTokenizer":
        template = ByteTokenizer(eod=0, pad=1, special_tokens={}, vocab_size=512)
    ids = {role: _byte_id(role, token, template) for role, token in options.items()}
    return ByteTokenizer(
        eod=template.eod if ids["eod"] is None else ids["eod"],
        pad=template.pad if ids["pad"] is None else ids["pad"],
        bos=ids["bos"],
        special_tokens=template.special_tokens,
        vocab_size=vocab_size or (512 if kind == "ByteLevelTokenizer" else 0),
        unique_identifiers=identifiers or {"class": kind},
    )


def _byte_id(role: str, token: str | int | None, template: ByteTokenizer) -> int | None:
    if token is None or isinstance(token, int):
        return token
    if token.isascii() and token.isdigit():
        return int(token)
    found = template.token_id(token)
    if found is None:
        names = ", ".join(template.special_tokens) or "none: state an id"
        raise TokenizerChoiceError(f"{role}={token!r} is not a special token; there are {names}")
    return found
