"""The sentences of some samples, and how samples that cannot be made are told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

from coredata._typing import Int64
from coredata.masking.words import WordTable


@dataclass(frozen=True, eq=False)
class SampleSentences:
    """Tokens of a batch of samples, sentence by sentence, before they are masked.

    Attributes:
        tokens: all, end to end.
        lengths: tokens of each sentence; they add up to the tokens.
        targets: length in tokens that each sample is cut to.
        row_splits: sentences of sample k are those from row_splits[k] up to row_splits[k + 1].
        whole: tokens of each sample before anything was left out of `tokens`.
        seeds: 0 … 2^32 - 1, of the generator of each sample.
        numbers: what errors call each sample.
    """

    tokens: Int64[np.ndarray, " tokens"]
    lengths: Int64[np.ndarray, " sentences"]
    targets: Int64[np.ndarray, " batch"]
    row_splits: Int64[np.ndarray, " batch+1"]
    whole: Int64[np.ndarray, " batch"]
    seeds: Int64[np.ndarray, " batch"]
    numbers: Int64[np.ndarray, " batch"]

    def __len__(self) -> int:
        """Samples."""
        return self.targets.size


@runtime_checkable
class Masking(Protocol):
    """What makes samples of sentences: `BertMasking`, `T5Masking`."""

    @property
    def words(self) -> WordTable:
        """The vocabulary."""
        ...

    @property
    def ids(self) -> Any:
        """Special ids."""
        ...

    def fields(self, batch: int) -> Mapping[str, tuple[tuple[int, ...], DTypeLike]]:
        """Name -> shape and dtype of the arrays that `fill` wants."""
        ...

    def fill(self, samples: SampleSentences, out: Mapping[str, Int64[np.ndarray, "..."]]) -> None:
        """Make all samples.

        Raises:
            ValueError: a sample that cannot be made.
        """
        ...


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written: one compiled version serves all arrays of a dtype."""
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


def unknown_token(sample: int, token: int, largest: int) -> ValueError:
    """The error for a token that the tokenizer's vocabulary lacks."""
    return ValueError(
        f"sample {sample}: token {token} is not in the tokenizer's vocabulary (ids up to "
        f"{largest}). Give the tokenizer that the file was made with"
    )
