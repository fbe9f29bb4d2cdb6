"""Items of rows to tokens, with errors that name the row."""

from typing import Any

from coredata.datasets.rows import Item, ItemSource
from coredata.formats import RowError
from coredata.text.conversation_protocol import ConversationTokenizer
from coredata.varlen import Tokenized, check_tokenized, split_conversations


def require_conversation_tokenizer(tokenizer: Any) -> None:
    """Refuse a tokenizer that cannot write conversations.

    Raises:
        ValueError: it cannot; the text says what to use.
    """
    if not isinstance(tokenizer, ConversationTokenizer):
        raise ValueError(
            f"tokenizer: {type(tokenizer).__name__} has no tokenize_conversation, which turns "
            "messages into tokens. Give it a chat template (coredata.text.ChatTokenizer), or use "
            "coredata.text.ByteConversationTokenizer for a first try"
        )


def item_tokens(item: Item, tokenizer: Any, source: str) -> Tokenized:
    """Ids and targets of messages, or of text, all of which counts.

    Raises:
        RowError: a ValueError: the tokenizer refuses it; the text begins with `source`.
    """
    try:
        if isinstance(item, str):
            ids, _ = tokenizer.encode_batch([item])  # unlike encode, without an object a token
            return Tokenized(ids, ids)
        require_conversation_tokenizer(tokenizer)
        return check_tokenized(tokenizer.tokenize_conversation(item), type(tokenizer).__name__)
    except ValueError as error:
        raise RowError(f"{source}: {error}") from error


def row_conversations(source: ItemSource, row: int) -> list[Any]:
    """The conversations of a row; a row of text is refused.

    Raises:
        RowError: a ValueError; it is text.
    """
    item = source[row]
    if isinstance(item, str):
        raise RowError(f"{source.where(row)}: plain text, but packs are made of conversations")
    return split_conversations(item)
