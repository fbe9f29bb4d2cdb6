"""How many samples a model learns nothing from, because no answer is left in them."""

import threading
from collections.abc import Iterable
from typing import NamedTuple, final

from coredata.varlen import LossFacts


class LossCounts(NamedTuple):
    """What became of the tokens that shall bear loss. End tokens put in do not count.

    Attributes:
        samples: how many were looked at.
        without_answer: of them, those whose row has nothing to learn from, whatever the limit.
        without_loss: of them, those in which nothing to learn from is left; the former among them.
        shortened: of them, those that lost a part of it, or all.
        tokens: tokens of all rows that count.
        lost: of them, those that were cut off.
    """

    samples: int = 0
    without_answer: int = 0
    without_loss: int = 0
    shortened: int = 0
    tokens: int = 0
    lost: int = 0

    def and_also(self, facts: LossFacts) -> "LossCounts":
        """The counts with one more sample."""
        return LossCounts(
            self.samples + 1,
            self.without_answer + (facts.counted == 0),
            self.without_loss + (facts.kept == 0),
            self.shortened + (facts.kept < facts.counted),
            self.tokens + facts.counted,
            self.lost + facts.counted - facts.kept,
        )

    def __str__(self) -> str:
        """One line, for a log."""
        return (
            f"{self.samples} samples: {self.without_loss} without loss ({self.without_answer} have "
            f"no answer), {self.shortened} with answers cut short; {self.lost} of {self.tokens} "
            "tokens that bear loss were cut off"
        )


def count_losses(facts: Iterable[LossFacts]) -> LossCounts:
    """Sum up samples."""
    counts = LossCounts()
    for fact in facts:
        counts = counts.and_also(fact)
    return counts


@final
class LossTally:
    """Counts samples as they are read, in any thread. A copy in another process starts anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts = LossCounts()

    def add(self, facts: LossFacts) -> None:
        """Count one more sample."""
        with self._lock:
            self.counts = self.counts.and_also(facts)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return LossTally, ()
