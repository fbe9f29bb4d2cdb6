"""Where the chat template of a model is: beside its `tokenizer.json`."""

import json
import os.path
from typing import Any

from coredata.storage import exists, join, read_bytes
from coredata.text.chat_template import ChatTemplate, ChatTemplateError

_JINJA = "chat_template.jinja"
_CONFIGURATION = "tokenizer_config.json"


def read_chat_template(
    path: str, name: str | None = None, *, date: str | None = None
) -> ChatTemplate:
    """The template that a model's files hold.

    `chat_template.jinja` comes before what `tokenizer_config.json` says, as in transformers; a list
    of named templates in the latter is searched when a `name` is given.

    Args:
        path: the model's directory or its `tokenizer.json` (local or a URL), or a `.jinja` file.
        name: which of several; without it, `default`.
        date: what the template takes for today.

    Raises:
        FileNotFoundError: `path` does not exist, or there is no template.
        ChatTemplateError: no template of that name, or a file that is not what it should be.
    """
    if path.endswith(".jinja"):
        return ChatTemplate(_text(path), path, date)
    directory = os.path.dirname(path) if path.endswith(".json") else path
    own, configured = join(directory, _JINJA), join(directory, _CONFIGURATION)
    if exists(own) and name in (None, "default"):
        return ChatTemplate(_text(own), own, date)
    found = _configured(configured) if exists(configured) else {}
    if not found and not exists(own):
        raise FileNotFoundError(
            f"no chat template in {directory or '.'}: there is no {_JINJA} and no chat_template in "
            f"{_CONFIGURATION}. Give one, such as template=ChatTemplate(text), or a .jinja file."
        )
    wanted = "default" if name is None else name
    if wanted not in found:
        there = [*(["default"] if exists(own) else []), *found]
        raise ChatTemplateError(
            f"{directory or '.'} has no chat template named {wanted!r}; there are "
            f"{', '.join(sorted(set(there)))}. Say which with name=…"
        )
    return ChatTemplate(found[wanted], f"{wanted!r} of {configured}", date)


def _text(path: str) -> str:
    if not exists(path):
        raise FileNotFoundError(f"there is no chat template {path}")
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ChatTemplateError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from None


def _configured(path: str) -> dict[str, str]:
    """The templates in a `tokenizer_config.json`, by name."""
    try:
        content = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise ChatTemplateError(f"{path} is not JSON: {error}") from None
    value = content.get("chat_template") if isinstance(content, dict) else None
    if value is None:
        return {}
    if isinstance(value, str):
        return {"default": value}
    named = _named(value)
    if named is None:
        raise ChatTemplateError(
            f"chat_template in {path} is neither a text nor a list of "
            '{"name": "default", "template": "…"}'
        )
    return named


def _named(value: Any) -> dict[str, str] | None:
    if isinstance(value, dict):
        value = [{"name": name, "template": template} for name, template in value.items()]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    found = {item.get("name"): item.get("template") for item in value}
    if not all(isinstance(part, str) for pair in found.items() for part in pair):
        return None
    return found
