"""Sample numbers as users give them: checked, and batch padding told apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Bool, Int64, Shaped
from coredata.datasets.protocol import PADDING

_FEW = 128


@dataclass(frozen=True)
class SampleNumbers:
    """Samples to read.

    Attributes:
        samples: sample numbers, 0 in place of padding.
        padding: which of them are batch padding; None if none is.
    """

    samples: Int64[np.ndarray, " batch"]
    padding: Bool[np.ndarray, " batch"] | None


def sample_numbers(
    indices: Shaped[np.ndarray, "..."] | Sequence[Any], size: int, name: str
) -> SampleNumbers:
    """Check the sample numbers asked of a dataset of `size` samples called `name`.

    Raises:
        TypeError: numbers that are not integers.
        ValueError: not one-dimensional.
        IndexError: a sample that does not exist; or padding asked of a dataset without samples.
    """
    given = np.asarray(indices)
    if given.ndim != 1:
        raise ValueError(
            f"indices: got an array of shape {given.shape}, need one dimension, such as [0, 1, 2]"
        )
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(
            f"indices: got values of type {given.dtype.name}, need integers: sample numbers from "
            f"0 to {size - 1}, or {PADDING} for batch padding"
        )
    numbers = given.astype(np.int64)
    if numbers.size == 0:
        return SampleNumbers(numbers, None)
    lowest, highest = _ends(numbers)
    if not PADDING <= lowest <= highest < size or (size == 0):
        _refuse(numbers, size, name)
    if lowest > PADDING:
        return SampleNumbers(numbers, None)
    padding = numbers == PADDING
    return SampleNumbers(np.where(padding, 0, numbers), padding)


def sample_number(index: Any, size: int, name: str) -> SampleNumbers:
    """Check one sample number; None asks for batch padding, as `PADDING` does.

    Raises:
        TypeError: not an integer.
        IndexError: a sample that does not exist.
    """
    if index is None:
        index = PADDING
    if isinstance(index, bool) or not isinstance(index, int | np.integer):
        raise TypeError(
            f"sample number: got {index!r} of type {type(index).__name__}, need an integer from 0 "
            f"to {size - 1}, or None for batch padding"
        )
    return sample_numbers(np.array([index]), size, name)


def _ends(numbers: Int64[np.ndarray, " batch"]) -> tuple[int, int]:
    """The smallest and the largest; of a few numbers, Python finds them sooner."""
    if numbers.size <= _FEW:
        few = numbers.tolist()
        return min(few), max(few)
    return int(numbers.min()), int(numbers.max())


def _refuse(numbers: np.ndarray, size: int, name: str) -> None:
    wrong = numbers[(numbers < PADDING) | (numbers >= size)]
    if len(wrong) == 0 or size == 0:
        raise IndexError(
            f"sample {numbers[0]} was asked of {name}, which has no samples; ask for more of its "
            "data, or shorter sequences"
        )
    raise IndexError(
        f"sample {wrong[0]} was asked of {name}, which has {size}, numbered 0 to {size - 1} "
        f"({PADDING} asks for batch padding)"
    )
