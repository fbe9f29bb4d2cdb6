"""Which characters, and which tokens, of a conversation the assistant says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coredata._typing import Bool, Int64
from coredata.text.chat_template import ChatTemplateError

_AROUND = 24
"""Characters shown before and after a difference."""


Render = Callable[[Sequence[Mapping[str, Any]], bool], str]
"""Messages to text that ends with the assistant's header if the second argument is true."""


def spans_by_prefixes(
    render: Render, messages: Sequence[Mapping[str, Any]], text: str, name: str
) -> tuple[tuple[int, int], ...]:
    """Spans of the assistant's turns in `text`, found by rendering ever more of the conversation.

    A turn begins where the text of the messages before it ends, generation prompt included (that is
    the assistant's header), and ends where the text of the messages up to it ends. A template that
    adds nothing for a generation prompt may still write a header; that is what two turns with
    different content begin with alike.

    Args:
        render: the template.
        messages: one conversation.
        text: what `render` makes of all of it.
        name: of the template, for error texts.

    Raises:
        ChatTemplateError: the text of a part of the conversation is not the beginning of `text`, so
            that where the turn lies cannot be told; both are shown where they first differ.
    """
    spans = []
    for turn, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        start = _header_end(render, messages, turn, text, name)
        stop = len(text)
        if turn + 1 < len(messages):
            through = render(messages[: turn + 1], False)
            _require_prefix(through, text, f"messages 0 to {turn}", name)
            stop = len(through)
        if start >= stop:
            raise ChatTemplateError(
                f"chat template {name} writes nothing for message {turn}, an assistant turn; put "
                "{% generation %} marks into the template, or use one that writes it"
            )
        spans.append((start, stop))
    return tuple(spans)


def _header_end(
    render: Render, messages: Sequence[Mapping[str, Any]], turn: int, text: str, name: str
) -> int:
    before = messages[:turn]
    what = f"messages 0 to {turn - 1} and the generation prompt"
    prompt = render(before, True)
    _require_prefix(prompt, text, what, name)
    if prompt != render(before, False):
        return len(prompt)
    content = messages[turn].get("content")
    first, second = (
        render([*before, {"role": "assistant", "content": _like(content, probe)}], False)
        for probe in ("0", "1")
    )
    header = first[: _first_difference(first, second)]
    _require_prefix(header, text, f"the header of message {turn}", name)
    return len(header)


def _like(content: Any, text: str) -> Any:
    """`text` in the form of `content`: plainly, or as a list with one part."""
    return [{"type": "text", "text": text}] if isinstance(content, list | tuple) else text


def _require_prefix(prefix: str, text: str, what: str, name: str) -> None:
    if text.startswith(prefix):
        return
    at = _first_difference(prefix, text)
    begin = max(0, at - _AROUND)
    raise ChatTemplateError(
        f"chat template {name} has no {{% generation %}} marks, and writes a part of this "
        f"conversation differently from the whole, so the assistant's turns cannot be found in "
        f"it. First difference at character {at}: {what} give "
        f"{prefix[begin : at + _AROUND]!r}, the whole conversation "
        f"{text[begin : at + _AROUND]!r}. Put {{% generation %}} … {{% endgeneration %}} around "
        "what the assistant says, or use prompt format 'default' to count every token."
    )


def _first_difference(left: str, right: str) -> int:
    shorter = min(len(left), len(right))
    return next((at for at in range(shorter) if left[at] != right[at]), shorter)


def tokens_in_spans(
    offsets: Int64[np.ndarray, "tokens 2"], spans: Sequence[tuple[int, int]]
) -> Bool[np.ndarray, " tokens"]:
    """Which tokens hold a character of a span.

    A token that straddles the edge of a span is in it, as in transformers: what the model has to
    say is part of it. Some byte-level tokenizers report tokens without their white space; a token
    of nothing but white space is then empty, and stands for what lies between it and the one
    before.

    Args:
        offsets: (start, stop) of each token, in characters, in order.
        spans: (start, stop), in order, none empty, none overlapping.
    """
    if not spans or not len(offsets):
        return np.zeros(len(offsets), dtype=bool)
    start, stop = offsets[:, 0], offsets[:, 1]
    previous = np.concatenate([np.zeros(1, np.int64), np.maximum.accumulate(stop)[:-1]])
    start = np.where(start == stop, np.minimum(previous, start), start)
    bounds = np.array(spans, dtype=np.int64)
    candidate = np.searchsorted(bounds[:, 1], start, side="right")
    inside = candidate < len(bounds)
    return inside & (bounds[np.minimum(candidate, len(bounds) - 1), 0] < stop)
