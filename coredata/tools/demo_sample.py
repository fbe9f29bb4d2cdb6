"""One sample as text, document by document."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coredata._typing import Int32, Int64
from coredata.datasets.protocol import Batch, Dataset
from coredata.text import Tokenizer

_TELLING = (3, 2)


@dataclass(frozen=True)
class Piece:
    """The part of a sample that is of one document.

    Attributes:
        tokens: how many there are.
        text: decoded, the end token aside.
        ends: whether the document ends here, with its end token.
    """

    tokens: int
    text: str
    ends: bool


def telling_sample(dataset: Dataset, first: int = 64) -> tuple[int, Batch]:
    """The first sample of three documents (else two, else the first of all), as a batch of one."""
    numbers = np.arange(min(first, len(dataset)), dtype=np.int64)
    batch = dataset.get_batch(numbers)
    documents = [len(boundaries(row)) - 1 for row in batch["cu_seqlens"]]
    wanted = next((count for count in _TELLING if count in documents), documents[0])
    chosen = documents.index(wanted)
    return chosen, {name: values[chosen : chosen + 1] for name, values in batch.items()}


def boundaries(cu_seqlens: Int32[np.ndarray, " entries"]) -> Int32[np.ndarray, " bounds"]:
    """Where documents begin in a sample, and its length, without the repetitions at the end."""
    return np.unique(cu_seqlens)


def pieces(
    tokens: Int64[np.ndarray, " S"], bounds: Sequence[int], tokenizer: Tokenizer
) -> list[Piece]:
    """The documents of one sample, decoded."""
    found = []
    for begin, end in itertools.pairwise(bounds):
        part = tokens[begin:end]
        ends = bool(part[-1] == tokenizer.eod)
        text = tokenizer.decode(part[:-1] if ends else part)
        found.append(Piece(tokens=int(end - begin), text=text, ends=ends))
    return found
