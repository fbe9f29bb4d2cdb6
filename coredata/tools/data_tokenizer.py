"""The tokenizer that flags name, wrapped for conversations where these are read."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from coredata.storage import read_bytes
from coredata.text import (
    ByteConversationTokenizer,
    ByteTokenizer,
    ChatTokenizer,
    ConversationTokenizer,
    Tokenizer,
    find_prompt_format,
    load_tokenizer,
    read_chat_template,
)


def tokenizer_from_args(args: argparse.Namespace) -> Tokenizer:
    """The tokenizer; with `--sft` or `--use-varlen-dataset`, one that writes conversations too.

    Raises:
        ValueError: too few, too many or the wrong flags; no chat template where one is needed.
        FileNotFoundError: a file is missing.
    """
    kind = args.tokenizer_type
    if kind == "SFTTokenizer":  # The reference's name of a model's tokenizer with its template.
        kind = "HuggingFaceTokenizer"
    tokenizer = load_tokenizer(
        kind,
        args.tokenizer_model,
        args.vocab_file,
        args.merge_file,
        eod=args.eod,
        vocab_size=args.vocab_size,
        unique_identifiers=identifiers_from_args(args),
    )
    if args.mock_data or not (args.sft or args.use_varlen_dataset):
        return tokenizer
    return _for_conversations(args, tokenizer)


def _for_conversations(args: argparse.Namespace, tokenizer: Tokenizer) -> Tokenizer:
    if isinstance(tokenizer, ConversationTokenizer):
        return tokenizer
    if isinstance(tokenizer, ByteTokenizer):
        if args.tokenizer_type == "ByteTokenizer":
            return ByteConversationTokenizer()
        return tokenizer
    try:
        prompt_format = find_prompt_format(args.sft_tokenizer_prompt_format)
    except ValueError as error:
        raise ValueError(f"--sft-tokenizer-prompt-format: {error}") from error
    if prompt_format.template is not None:
        return ChatTokenizer(tokenizer, None, prompt_format)
    place = args.chat_template or args.tokenizer_model
    if place is None:
        return tokenizer
    try:
        template = read_chat_template(place)
    except FileNotFoundError as error:
        if args.use_varlen_dataset and args.chat_template is None:
            return tokenizer  # Rows of plain text need none.
        raise FileNotFoundError(
            f"{error} Give --chat-template PATH, or --sft-tokenizer-prompt-format identity"
        ) from error
    return ChatTokenizer(tokenizer, template, prompt_format)


def identifiers_from_args(args: argparse.Namespace) -> Mapping[str, Any] | None:
    """What caches know the tokenizer by, if told.

    Raises:
        ValueError: no JSON object.
        FileNotFoundError: neither JSON text nor a file.
    """
    given = args.tokenizer_identifiers
    if given is None:
        return None
    text = given if given.lstrip().startswith("{") else read_bytes(given).decode("utf-8")
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"--tokenizer-identifiers: {error}, in {text[:60]!r}; need a JSON object"
        ) from error
    while isinstance(found, Mapping) and "tokenizer" not in found and found.get("datasets"):
        found = found["datasets"][0]
    if isinstance(found, Mapping) and "index_split" in found:
        found = found.get("tokenizer")
    if not isinstance(found, Mapping):
        raise ValueError(
            f"--tokenizer-identifiers: {text[:60]!r} holds no object that identifies a tokenizer; "
            'give {"class": …}, or the description.txt of a cache'
        )
    return found
