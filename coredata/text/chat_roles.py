"""Roles that a chat template does not know."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coredata.text.chat_template import ChatTemplateError


def require_all_roles(
    render: Callable[[Sequence[Mapping[str, Any]]], str],
    messages: Sequence[Mapping[str, Any]],
    text: str,
    name: str,
) -> None:
    """Nothing, if what each role says has a part in the text.

    Many templates write nothing for a role they do not know, or for a plain text where they look
    for a list of parts; what is said would be lost without a word. So what a role says is changed,
    and the text has to change with it. Costs one rendering for every role.

    Args:
        render: the template.
        messages: one conversation.
        text: what `render` makes of it.
        name: of the template, for error texts.

    Raises:
        ChatTemplateError: what a role says is left out.
    """
    for role in {message["role"]: None for message in messages}:
        turns = [turn for turn, message in enumerate(messages) if _says(message, role)]
        if not turns:
            continue
        changed = [dict(message) for message in messages]
        for turn in turns:
            changed[turn]["content"] += "x"
        if render(changed) == text:
            raise ChatTemplateError(
                f"chat template {name} leaves out what role {role!r} says (message {turns[0]}): it "
                "does not know the role, or wants content of another form. Give those turns "
                "another role, such as 'user', or use a template that has it."
            )


def _says(message: Mapping[str, Any], role: str) -> bool:
    content = message.get("content")
    return message["role"] == role and isinstance(content, str) and bool(content.strip())
