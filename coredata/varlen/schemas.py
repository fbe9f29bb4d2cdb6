"""What a row of chat, instruction or text data means, told by the names of its columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MESSAGES = "openai-messages"
SHAREGPT = "sharegpt"
ALPACA = "alpaca"
TEXT = "pretrain-text"

SCHEMAS = (MESSAGES, SHAREGPT, ALPACA, TEXT)
"""Names of the schemas, in the order in which they are tried."""

Message = dict[str, Any]
"""A turn: `role` and `content`."""

_INSTRUCTION = ("instruction", "prompt", "query", "question")
_INPUT = ("input", "context")
_OUTPUT = ("output", "response", "completion", "answer")
_SHAREGPT_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}
_COLUMNS = {
    MESSAGES: ("messages",),
    SHAREGPT: ("conversations",),
    ALPACA: (*_INSTRUCTION, *_INPUT, *_OUTPUT),
    TEXT: ("text",),
}
_SHOWN = 20


def detect_schema(columns: Iterable[str]) -> str:
    """The schema of rows with these columns; the first of `SCHEMAS` that fits.

    Raises:
        ValueError: none fits; the text lists the columns and what would fit.
    """
    names = set(columns)
    if "messages" in names:
        return MESSAGES
    if "conversations" in names:
        return SHAREGPT
    if names.intersection(_INSTRUCTION) and names.intersection(_OUTPUT):
        return ALPACA
    if "text" in names:
        return TEXT
    shown = ", ".join(sorted(names)[:_SHOWN]) or "none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    raise ValueError(
        f"no schema fits the columns {shown}{more}. Known are: {MESSAGES} (a column messages), "
        f"{SHAREGPT} (a column conversations), {ALPACA} (one of {', '.join(_INSTRUCTION)} and one "
        f"of {', '.join(_OUTPUT)}), {TEXT} (a column text). Rename the columns to one of these"
    )


def schema_columns(schema: str) -> tuple[str, ...]:
    """The columns that a schema reads, those that are there.

    Raises:
        ValueError: an unknown schema.
    """
    if schema not in _COLUMNS:
        raise ValueError(f"schema: got {schema!r}, need one of {', '.join(SCHEMAS)}")
    return _COLUMNS[schema]


def convert_row(row: Mapping[str, Any], schema: str) -> list[Message] | str:
    """Messages of a row, or its text under the schema `pretrain-text`.

    Messages have `role` and `content` and nothing else. A turn without role is the user's, null
    content is empty, and an empty system turn is put first where there is none (under
    `openai-messages` only if there are turns).

    Raises:
        ValueError: an unknown schema, or a value of another type than the schema wants: image
            parts, numbers, objects. The text names field and type.
    """
    schema_columns(schema)
    if schema == TEXT:
        return _text(row.get("text"), "text")
    if schema == ALPACA:
        return _alpaca(row)
    if schema == SHAREGPT:
        turns = [_sharegpt_turn(turn, at) for at, turn in _turns(row, "conversations")]
        return _with_system(turns)
    turns = [_message(turn, at) for at, turn in _turns(row, "messages")]
    return _with_system(turns) if turns else []


def raw_messages(row: Mapping[str, Any]) -> list[Message]:
    """The turns under `messages` as they are, with all their keys, for a chat template to use.

    Raises:
        ValueError: turns, roles or contents of a wrong type; the text names field and type.
    """
    turns = []
    for at, turn in _turns(row, "messages"):
        _message(turn, at)
        turns.append(dict(turn))
    return turns


def _message(turn: Mapping[str, Any], at: str) -> Message:
    return _turn(_text(turn.get("role"), f"{at}.role") or "user", turn, at, "content")


def _sharegpt_turn(turn: Mapping[str, Any], at: str) -> Message:
    speaker = _text(turn.get("from"), f"{at}.from").lower()
    return _turn(_SHAREGPT_ROLES.get(speaker, "user"), turn, at, "value")


def _turn(role: str, turn: Mapping[str, Any], at: str, field: str) -> Message:
    return {"role": role, "content": _text(turn.get(field), f"{at}.{field}")}


def _alpaca(row: Mapping[str, Any]) -> list[Message]:
    user = _first_text(row, _INSTRUCTION)
    context = _first_text(row, _INPUT)
    if context:
        user = f"{user}\n\n{context}"
    return [
        {"role": "system", "content": ""},
        {"role": "user", "content": user},
        {"role": "assistant", "content": _first_text(row, _OUTPUT)},
    ]


def _first_text(row: Mapping[str, Any], fields: Sequence[str]) -> str:
    for field in fields:
        text = _text(row.get(field), field)
        if text:
            return text
    return ""


def _with_system(turns: list[Message]) -> list[Message]:
    if turns and turns[0]["role"] == "system":
        return turns
    return [{"role": "system", "content": ""}, *turns]


def _turns(row: Mapping[str, Any], field: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The turns of a row, each with what errors call it."""
    turns = row.get(field)
    if turns is None:
        return []
    if not isinstance(turns, list | tuple):
        raise ValueError(f"field {field} is of type {_kind(turns)}; need a list of turns")
    named = [(f"{field}[{number}]", turn) for number, turn in enumerate(turns)]
    for at, turn in named:
        if not isinstance(turn, Mapping):
            raise ValueError(f"field {at} is of type {_kind(turn)}; need an object, one turn")
    return named


def _text(value: Any, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(
            f"field {field} is of type {_kind(value)}; need a string. Rows with images, parts or "
            "other structure must be turned into text beforehand"
        )
    return value


def _kind(value: Any) -> str:
    return type(value).__name__
