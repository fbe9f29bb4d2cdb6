"""Messages as chat templates get them, and what is refused before one sees them."""

from collections.abc import Mapping, Sequence
from typing import Any

_REASONING = ("reasoning_content", "thinking", "reasoning")
"""Names under which a turn's reasoning is found; templates read the first or the second."""


class ConversationError(ValueError):
    """Messages that cannot be written as text."""


def normalise(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages without keys whose value is None, reasoning under the names templates read.

    Both as in transformers: tables have a null where a message lacks a key that others have, and
    templates ask `'tool_calls' in message`.

    Raises:
        ConversationError: a message without a role, or an assistant turn that says nothing.
    """
    return [_normalise(message, turn) for turn, message in enumerate(messages)]


def plain(value: Any, where: str) -> Any:
    """A copy of JSON-like `value`, made of plain types only.

    Raises:
        ConversationError: it holds something else; `where` is the path to it.
    """
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value) if type(value) is not kind else value
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{number}]") for number, item in enumerate(value)]
    raise ConversationError(
        f"{where} is of type {type(value).__name__}; chat templates get text, numbers, lists and "
        "mappings only. Turn it into text first."
    )


def _normalise(message: Mapping[str, Any], turn: int) -> dict[str, Any]:
    kept = {key: value for key, value in message.items() if value is not None}
    if not isinstance(kept.get("role"), str):
        raise ConversationError(
            f"message {turn} has role {kept.get('role')!r} (keys: {', '.join(kept) or 'none'}); "
            "every message needs one, such as 'user'"
        )
    reasoning = next((kept[key] for key in _REASONING if key in kept), None)
    if reasoning is not None:
        kept = {"thinking": reasoning, **kept, "reasoning_content": reasoning}
    if kept["role"] == "assistant" and _says_nothing(kept):
        raise ConversationError(
            f"message {turn} is an empty assistant turn: there is nothing to learn from it. Leave "
            "out the turn or the conversation."
        )
    return kept


def _says_nothing(message: Mapping[str, Any]) -> bool:
    said = [message.get("content"), message.get("tool_calls"), message.get("reasoning_content")]
    return all(_is_empty(value) for value in said)


def _is_empty(value: Any) -> bool:
    """No text, no parts, or only parts whose text is empty."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    if not isinstance(value, list | tuple):
        return False
    return all(isinstance(part, Mapping) and _is_empty(part.get("text", part)) for part in value)
