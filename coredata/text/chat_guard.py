"""Special tokens written in messages, which would become the real thing: found and defused."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coredata.text.chat_messages import ConversationError

_PRIVATE = range(0xF0000, 0xFFFFE)
"""Code points of a private-use plane, whose meaning is up to whoever uses them."""


def any_of(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of the tokens, the longest first; it matches nothing if there are none."""
    longest_first = sorted((name for name in names if name), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def refuse_special_tokens(messages: Sequence[Mapping[str, Any]], special: re.Pattern[str]) -> None:
    """Nothing, if no message has the text of a special token in it.

    Raises:
        ConversationError: one has; it says which.
    """
    for turn, message in enumerate(messages):
        for text in _texts(message):
            found = special.search(text)
            if found:
                raise ConversationError(
                    f"message {turn} has the special token {found.group()!r} in its text, at "
                    f"character {found.start()}, and would forge a turn. Leave it out, or "
                    "set special_tokens_in_messages to 'spell' to write it as ordinary text."
                )


@dataclass(frozen=True)
class Disguise:
    """Special tokens in messages replaced by as many private characters, and back.

    A template runs on the disguised messages; then what it wrote itself can be told from what the
    messages hold, wherever it put them.

    Attributes:
        characters: special token -> the private character that stands for it.
    """

    characters: Mapping[str, str]

    @staticmethod
    def of(
        messages: Sequence[Mapping[str, Any]], special: re.Pattern[str], used: str
    ) -> "Disguise":
        """A disguise for the special tokens of `messages`.

        Args:
            messages: one conversation.
            special: `any_of` the special tokens.
            used: other text whose characters must not be taken.

        Raises:
            ConversationError: a special token of one character, which cannot be spelled.
        """
        texts = [text for message in messages for text in _texts(message)]
        found = sorted({match for text in texts for match in special.findall(text)})
        if not found:
            return Disguise({})
        taken = set(used).union(*texts)
        free = (chr(code) for code in _PRIVATE if chr(code) not in taken)
        for token in found:
            if len(token) == 1:
                raise ConversationError(
                    f"a message has the special token {token!r} in its text, which cannot be "
                    "spelled because it is a single character; leave it out"
                )
        return Disguise(dict(zip(found, free, strict=False)))

    def put_on(self, value: Any) -> Any:
        """`value` with special tokens in its texts replaced; lengths stay."""
        if not self.characters:
            return value
        if isinstance(value, str):
            return any_of(self.characters).sub(
                lambda found: self.characters[found.group()] * len(found.group()), value
            )
        if isinstance(value, Mapping):
            return {self.put_on(key): self.put_on(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.put_on(item) for item in value]
        return value

    def take_off(self, text: str) -> tuple[str, list[int]]:
        """The text with special tokens back in place, and where to cut it.

        A cut is after the first character of such a token: pieces encoded by themselves do not hold
        it any more.
        """
        cuts: list[int] = []
        for token, character in self.characters.items():
            size = len(token)
            for found in re.finditer(f"{re.escape(character)}{{{size}}}", text):
                cuts.append(found.start() + 1)
            text = text.replace(character * size, token)
        return text, sorted(cuts)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
