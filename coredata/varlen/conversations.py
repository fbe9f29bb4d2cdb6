"""Messages cut into conversations, and how much of their loss a limit on length leaves."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coredata._typing import Integer

IGNORED = -100
"""The target of a token that does not count in the loss."""


class Tokenized(NamedTuple):
    """Token ids, and the targets that the loss is taken of: the ids themselves, or -100."""

    ids: Integer[np.ndarray, " tokens"]
    targets: Integer[np.ndarray, " tokens"]


class LossFacts(NamedTuple):
    """What became of the tokens that count in the loss, end tokens that were put in left out.

    Attributes:
        counted: tokens of the row that count.
        kept: those of them that are labels of the sample; the rest was cut off.
    """

    counted: int
    kept: int


def split_conversations(messages: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Cut messages before each system message; every part is a conversation."""
    conversations: list[list[Mapping[str, Any]]] = []
    for message in messages:
        if message.get("role") == "system" or not conversations:
            conversations.append([])
        conversations[-1].append(message)
    return conversations


def loss_facts(targets: Integer[np.ndarray, " tokens"], kept: int) -> LossFacts:
    """Count targets of a row of which the first `kept` tokens stay.

    The first token has nothing before it that could predict it, so it never counts.
    """
    counts = targets[1:] != IGNORED
    return LossFacts(int(counts.sum()), int(counts[: max(kept - 1, 0)].sum()))


def check_tokenized(tokenized: tuple[Any, Any], source: str) -> Tokenized:
    """Ids and targets from a tokenizer of any make, as int64 arrays of one length.

    Raises:
        ValueError: they are not; the text names `source`.
    """
    ids, targets = (np.asarray(values) for values in tokenized)
    if ids.ndim != 1 or ids.shape != targets.shape or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(
            f"{source} gave ids of shape {ids.shape} and type {ids.dtype}, and targets of shape "
            f"{targets.shape}; need two integer arrays of one length"
        )
    return Tokenized(ids.astype(np.int64), targets.astype(np.int64))
