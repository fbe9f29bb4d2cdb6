"""What datasets of conversations ask of a tokenizer."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coredata._typing import Int64

IGNORED = -100
"""The target of a token that does not count in the loss."""


@runtime_checkable
class ConversationTokenizer(Protocol):
    """Messages to token ids, and to what the loss is taken of.

    A message is a mapping with at least `role` and `content`. Any class of this shape will do.
    """

    def tokenize_conversation(
        self, messages: Sequence[Mapping[str, Any]]
    ) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, " tokens"]]:
        """Ids of one conversation, and targets: the id where the loss counts, else -100.

        Both are of one length and not shifted: the target of a token is the token itself.

        Raises:
            ValueError: messages that cannot be written; the text names the turn and the field.
        """
        ...
