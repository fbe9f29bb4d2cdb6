"""What --skip-samples says, and a dataset without these samples."""

from typing import Any

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
