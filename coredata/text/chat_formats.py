"""Prompt formats: which template writes a conversation, and what of it counts in the loss."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_IDENTITY = (
    "{% for message in messages %}{% if message.role == 'assistant' %}"
    "{% generation %}{{ message.content }}{% endgeneration %}"
    "{% else %}{{ message.content }}{% endif %}{% endfor %}"
)


@dataclass(frozen=True)
class PromptFormat:
    """How conversations become tokens and targets.

    Attributes:
        name: what command lines call it.
        counts: "assistant": the loss counts on what the assistant says; "all": on every token.
        template: a Jinja template to use instead of the tokenizer's own.
        system_role: whether the template has one. If not, an empty system turn at the beginning is
            left out, and one with text refused.
    """

    name: str
    counts: Literal["assistant", "all"] = "assistant"
    template: str | None = None
    system_role: bool = True


PROMPT_FORMATS = (
    PromptFormat("assistant"),
    PromptFormat("default", counts="all"),
    PromptFormat("identity", template=_IDENTITY),
)
"""`assistant`: the tokenizer's template, the assistant counts. `default`: the same template, every
token counts, as in the reference. `identity`: contents end to end, with nothing between them, the
assistant counts."""


def find_prompt_format(name: str, own: Iterable[PromptFormat] = ()) -> PromptFormat:
    """The format called `name`, among `own` first.

    Raises:
        ValueError: there is none.
    """
    known = {known.name: known for known in (*PROMPT_FORMATS, *own)}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise ValueError(
        f"unknown prompt format {name!r}. {hint}There are {', '.join(sorted(known))}; make one's "
        "own with PromptFormat(name, counts, template)."
    )
