"""Conversations as bytes: the chat tokenizer that needs no file and no template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Int64
from coredata.text.byte import ByteTokenizer
from coredata.text.conversation_protocol import IGNORED

_END = "<|end|>"
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class ByteConversationTokenizer(ByteTokenizer):
    """A `ByteTokenizer` for conversations too.

    Each turn is the token of its role, the bytes of its content, and `<|end|>`. The loss counts on
    the content and the end of assistant turns. The special tokens must include `<|system|>`,
    `<|user|>`, `<|assistant|>`, `<|tool|>` and `<|end|>`, as they do by default.
    """

    def tokenize_conversation(
        self, messages: Sequence[Mapping[str, Any]]
    ) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, " tokens"]]:
        """Ids and targets of one conversation.

        Raises:
            ValueError: a role that has no token, or content that is not a string.
        """
        ids: list[int] = []
        targets: list[int] = []
        end = self._token(_END)
        for turn, message in enumerate(messages):
            role, content = message.get("role"), message.get("content")
            if role not in _ROLES:
                raise ValueError(
                    f"message {turn}: role {role!r} has no token; use one of {', '.join(_ROLES)}"
                )
            if not isinstance(content, str):
                raise ValueError(
                    f"message {turn}: content is of type {type(content).__name__}, need a string"
                )
            text = [*self.encode(content), end]
            ids += [self._token(f"<|{role}|>"), *text]
            targets += [IGNORED, *(text if role == "assistant" else [IGNORED] * len(text))]
        return np.array(ids, np.int64), np.array(targets, np.int64)

    def _token(self, name: str) -> int:
        token = self.token_id(name)
        if token is None:
            raise ValueError(
                f"this ByteConversationTokenizer has no token {name}; give it special_tokens with "
                f"{name!r}"
            )
        return token
