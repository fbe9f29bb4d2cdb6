"""A dataset without some of its samples."""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from coredata._typing import Int64, Shaped
from coredata.datasets.protocol import PADDING, Batch, Dataset, LooksAhead, Sample
from coredata.datasets.sample_numbers import SampleNumbers, sample_number, sample_numbers
from coredata.sampling import SkipList

SKIPPED = "skipped_samples"
"""The entry of a fingerprint that holds the skip list; wrappers hand it on."""

_SHOWN = 200


@final
class WithoutSamples:
    """The samples of a dataset that are not on a skip list, in their order.

    Skipped samples are passed over as if the dataset did not contain them: sample k is the k-th one
    kept, and the length is the number of those kept. So every sampler, loader and adapter does the
    right thing without knowing of it: no rank gets a smaller batch, `consumed_samples` counts
    samples that were read, and a run resumes exactly on any number of ranks.

    The list is part of the fingerprint, and so of every loader's state: a state with another list
    is refused. `coredata.loading.state_with_skip_list` changes the list of a state.

    A cyclic sampler shuffles what is kept, so with another list its order is another one from the
    first epoch on.

    Args:
        dataset: what to read, whole: there is one list over a dataset.
        skip: which of its samples to pass over: their numbers, or a `SkipList`.

    Raises:
        IndexError: a number that is not one of the dataset's samples.
        ValueError: a negative number; or a dataset that is without some samples already, at
            whatever depth.
    """

    def __init__(
        self, dataset: Dataset, skip: SkipList | Sequence[int] | Shaped[np.ndarray, " skipped"]
    ) -> None:
        self.dataset = dataset
        self.skip = skip if isinstance(skip, SkipList) else SkipList.of(skip)
        _check_whole(dataset, self.skip)
        if self.skip.end > len(dataset):
            size = len(dataset)
            numbered = f"{size} samples, numbered 0 to {size - 1}" if size else "no samples"
            raise IndexError(
                f"skip: sample {self.skip.end - 1} is to be skipped, but the dataset has "
                f"{numbered}. Is the list for another dataset, or does it name steps instead of "
                "samples?"
            )

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"a dataset of {len(self.dataset)} samples of which {len(self.skip)} are skipped"

    def original(self, samples: Int64[np.ndarray, " batch"]) -> Int64[np.ndarray, " batch"]:
        """The numbers that samples have in the dataset itself."""
        return self.skip.kept(samples)

    def __len__(self) -> int:
        """Number of samples that are kept."""
        return len(self.dataset) - len(self.skip)

    def __getitem__(self, index: int | np.integer | None) -> Sample:
        """The `index`-th sample that is kept; None, or -1, gives batch padding.

        Raises:
            IndexError: a sample that does not exist.
            TypeError: not an integer.
        """
        number = int(self._numbers(sample_number(index, len(self), self.name))[0])
        return self.dataset[None if number == PADDING else number]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples."""
        numbers = self._numbers(sample_numbers(indices, len(self), self.name))
        return self.dataset.__getitems__(numbers.tolist())

    def get_batch(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> Batch:
        """Samples stacked, as the dataset stacks them; -1 gives batch padding.

        Raises:
            IndexError: a sample that does not exist.
            TypeError: numbers that are not integers.
        """
        return self.dataset.get_batch(self._numbers(sample_numbers(indices, len(self), self.name)))

    def prefetch(self, indices: Shaped[np.ndarray, " samples"]) -> None:
        """Let the dataset begin to fetch these samples; see `LooksAhead`."""
        if isinstance(self.dataset, LooksAhead):
            numbers = sample_numbers(indices, len(self), self.name)
            self.dataset.prefetch(self._numbers(numbers))

    def fingerprint(self) -> Mapping[str, Any]:
        """That of the dataset, and `skipped_samples`, unless none is skipped."""
        skipped = {SKIPPED: str(self.skip)} if self.skip.ranges else {}
        return {**self.dataset.fingerprint(), **skipped}

    def _numbers(self, numbers: SampleNumbers) -> Int64[np.ndarray, " batch"]:
        samples = self.original(numbers.samples)
        if numbers.padding is not None:
            samples = np.where(numbers.padding, PADDING, samples)
        return samples


def _check_whole(dataset: Dataset, skip: SkipList) -> None:
    """Refuse a dataset, or whatever is around one, that is without some samples already."""
    fingerprint = dataset.fingerprint()
    if SKIPPED not in fingerprint and not isinstance(dataset, WithoutSamples):
        return
    already = str(fingerprint.get(SKIPPED, ""))
    both = SkipList.parse(f"{already},{skip}")
    raise ValueError(
        f"skip: the dataset is without samples already ({_shown(already)}), and a second list "
        f"({_shown(str(skip))}) would count what is left of them. Give one list of numbers of the "
        f"whole dataset, such as both together, SkipList.parse({_shown(str(both))!r}), over the "
        "dataset beneath, or all of them in --skip-samples if it gave the first list"
    )


def _shown(skipped: str) -> str:
    return (skipped[:_SHOWN] + ", …" if len(skipped) > _SHOWN else skipped) or "none"
