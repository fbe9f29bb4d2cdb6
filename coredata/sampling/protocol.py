"""What every sampler does, and what a loader needs to know of one."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from coredata._typing import Int64

PADDING = -1
"""A sample number that stands for no sample: the dataset gives it zero loss."""

Order = Mapping[str, str | int]
"""What the order of samples depends on."""


@runtime_checkable
class BatchSampler(Protocol):
    """Which samples this rank takes, batch by batch, from `consumed_samples` on.

    A sampler is a value: iterating does not change it, and it is iterated as often as one likes.
    Progress is one number, the samples that all ranks together have consumed. It means the same
    on any number of ranks, as long as `order()` is the same.
    """

    cyclic: ClassVar[bool]
    """Whether there is another epoch after the last batch: `resume(consumed_after(len(self)))`."""

    total_samples: int
    """Samples in the dataset."""

    consumed_samples: int
    """Samples that all ranks together have consumed before the first batch."""

    def __len__(self) -> int:
        """Number of batches from here to the end (of the epoch, if `cyclic`)."""
        ...

    def __iter__(self) -> Iterator[Int64[np.ndarray, " batch"]]:
        """The batches of this rank."""
        return self.batches()

    def batches(self, start: int = 0) -> Iterator[Int64[np.ndarray, " batch"]]:
        """The batches of this rank from batch `start` on; seeking costs nothing.

        Raises:
            IndexError: `start` is outside 0 … len(self).
        """
        ...

    def consumed_after(self, batches: int) -> int:
        """What `consumed_samples` is after this many batches from here.

        Raises:
            IndexError: there are not so many batches (a cyclic sampler counts on).
        """
        ...

    def samples_in_batch(self, batch: int) -> int:
        """Samples that all ranks together take in batch number `batch` from here."""
        return self.consumed_after(batch + 1) - self.consumed_after(batch)

    def resume(self, consumed_samples: int) -> "BatchSampler":
        """The same sampler from another place.

        Raises:
            ValueError: no batch begins there.
        """
        ...

    def order(self) -> Order:
        """What the order of samples depends on, as a small flat mapping.

        Two samplers with equal orders go through the same samples in the same order, whatever
        their ranks and batch sizes: each resumes exactly from the other's `consumed_samples`.
        """
        ...
