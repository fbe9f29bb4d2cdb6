"""What --skip-samples says, and a dataset without these samples.

Commands name samples by their original numbers, those that a skip list takes: a list does not
change them. A loader counts only the samples that are kept; that is the kept number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata.datasets import WithoutSamples
from coredata.sampling import SkipList
from coredata.storage import exists, read_bytes


def read_skip_list(given: str | None) -> SkipList:
    """The skip list that a flag names: text, or a file of it.

    Raises:
        ValueError: neither numbers nor a file.
    """
    if given is None:
        return SkipList()
    if exists(given):
        return SkipList.parse(read_bytes(given).decode("utf-8"))
    try:
        return SkipList.parse(given)
    except ValueError as error:
        raise ValueError(f"--skip-samples: {error}; {given!r} is no file either") from error


def without(dataset: Any, skip: SkipList) -> Any:
    """The dataset without the samples on the list."""
    return WithoutSamples(dataset, skip) if skip.ranges else dataset


@dataclass(frozen=True)
class FoundSample:
    """A sample by its original number.

    Attributes:
        dataset: the dataset in which it has that number, whole.
        number: its original number.
        kept: how many kept samples are before it; None if it is skipped.
    """

    dataset: Any
    number: int
    kept: int | None


def find_sample(dataset: Any, number: int) -> FoundSample:
    """The sample with this original number of a dataset, be it `without` others.

    Raises:
        IndexError: there is none.
    """
    whole = dataset.dataset if isinstance(dataset, WithoutSamples) else dataset
    if not 0 <= number < len(whole):
        numbered = f"they are numbered 0 to {len(whole) - 1}" if len(whole) else "there is none"
        raise IndexError(f"sample {number} was asked of {len(whole)} samples; {numbered}")
    if not isinstance(dataset, WithoutSamples):
        return FoundSample(whole, number, number)
    asked = np.array([number], np.int64)
    if dataset.skip.contains(asked)[0]:
        return FoundSample(whole, number, None)
    return FoundSample(whole, number, number - int(dataset.skip.skipped_below(asked)[0]))


def original_numbers(dataset: Any, numbers: np.ndarray) -> np.ndarray:
    """The original numbers of samples of a dataset, be it `without` others."""
    return dataset.original(numbers) if isinstance(dataset, WithoutSamples) else numbers
