"""Looking through a dataset of rows before a run: what bears loss, and what makes no sample."""

from collections.abc import Iterable
from typing import NamedTuple

from coredata.datasets.rows_dataset import RowDataset
from coredata.datasets.rows_loss import LossCounts, count_losses
from coredata.datasets.sample_numbers import sample_numbers

_SHOWN = 10


class Refused(NamedTuple):
    """A sample that cannot be made.

    Attributes:
        sample: its number.
        reason: what reading it raises: file, row and reason.
    """

    sample: int
    reason: str


class RowReport(NamedTuple):
    """What was found.

    Attributes:
        losses: of the samples that can be made, what bears loss.
        refused: the samples that cannot.
    """

    losses: LossCounts
    refused: tuple[Refused, ...]

    def __str__(self) -> str:
        """Some lines, for a log."""
        lines = [str(self.losses), f"{len(self.refused)} samples cannot be made"]
        lines += [f"  {refused.sample}: {refused.reason}" for refused in self.refused[:_SHOWN]]
        more = len(self.refused) - _SHOWN
        return "\n".join([*lines, f"  … {more} more"] if more > 0 else lines)


def check_samples(dataset: RowDataset, samples: Iterable[int] | None = None) -> RowReport:
    """Make samples one by one, and collect what a run would stumble over.

    Args:
        dataset: such as an `SFTDataset`.
        samples: which; None for one of each row.

    Raises:
        IndexError: a sample that does not exist.
    """
    if samples is None:
        samples = range(min(len(dataset), len(dataset.indices)))
    facts, refused = [], []
    for sample in sample_numbers(list(samples), len(dataset), dataset.name).samples.tolist():
        try:
            facts.append(dataset.loss_facts(sample))
        except ValueError as error:
            refused.append(Refused(sample, str(error)))
    return RowReport(count_losses(facts), tuple(refused))
