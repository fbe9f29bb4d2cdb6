"""How many tokens are masked, and in what pieces."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coredata._typing import Float64

_GEOMETRIC = 0.2
"""SpanBERT's (Joshi et al. 2019, section 3.1)."""
_STEPS = 2**53
"""Shares are multiples of one over this."""


@dataclass(frozen=True)
class MaskingSettings:
    """What the masking of a sample follows from, beside its tokens and its random numbers.

    Attributes:
        probability: share of tokens to mask, above 0 and below 1.
        max_ngram: most words (or pieces) masked as one, at least 1.
        full_words: mask all pieces of a word or none.
        permute: also let words change places with each other.
        longer_ngrams: prefer long n-grams; otherwise the probability of n is proportional to 1/n.
        geometric: draw n from a geometric distribution instead, as SpanBERT does.

    Raises:
        ValueError: one of them out of range, or two that exclude each other.
    """

    probability: float
    max_ngram: int
    full_words: bool
    permute: bool
    longer_ngrams: bool
    geometric: bool

    def __post_init__(self) -> None:
        if not 0 < self.probability < 1:
            raise ValueError(
                f"masking_probability: got {self.probability!r}, need a share above 0 and below 1, "
                "such as 0.15"
            )
        if self.max_ngram < 1:
            raise ValueError(f"masking_max_ngram: got {self.max_ngram}, need at least 1, such as 3")
        if self.geometric and self.permute:
            raise ValueError(
                "masking_do_permutation: it is on together with "
                "masking_use_geometric_distribution; turn one of them off"
            )

    @cached_property
    def cutoffs(self) -> Float64[np.ndarray, " sizes_but_one"]:
        """`size_cutoffs` of these settings."""
        return size_cutoffs(self)

    def most_masked(self, length: int) -> int:
        """How many tokens at most are masked in a sample of `length` tokens."""
        return max(1, round(length * self.probability))


def size_cutoffs(settings: MaskingSettings) -> Float64[np.ndarray, " sizes_but_one"]:
    """From which shares on an n-gram has more than 1, 2, … words.

    An n-gram drawn with the share u has 1 + (number of cutoffs at most u) words: exactly what
    `RandomState.choice` (with the probabilities of the sizes) or `RandomState.geometric`, cut at
    `max_ngram`, makes of u.
    """
    if settings.geometric:
        return np.array([_geometric_cutoff(n) for n in range(1, settings.max_ngram)], np.float64)
    chances = 1.0 / np.arange(1, settings.max_ngram + 1, dtype=np.int64)
    chances = chances / chances.sum(keepdims=True)
    if settings.longer_ngrams:
        chances = chances[::-1]
    chances = chances / chances.sum(keepdims=True)
    # The steps of RandomState.choice.
    sums = chances.cumsum()
    sums /= sums[-1]
    return np.ascontiguousarray(sums[:-1])


def _geometric_cutoff(size: int) -> float:
    """The smallest share for which the geometric draw is above `size`, by bisection."""
    below, above = 0, _STEPS
    while above - below > 1:
        middle = (below + above) // 2
        drawn = math.ceil(math.log1p(-(middle / _STEPS)) / math.log(1 - _GEOMETRIC))
        below, above = (below, middle) if drawn > size else (middle, above)
    return above / _STEPS
