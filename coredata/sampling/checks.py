"""Checks that several samplers share, and their error texts."""

import operator
from typing import Any

import numpy as np


def whole_number(name: str, value: Any, such_as: int = 0) -> int:
    """`value` as an int, be it numpy's; nothing is rounded.

    Args:
        name: what it is called where it was given.
        value: what was given.
        such_as: what the error names as an example.

    Raises:
        TypeError: a fraction, a text, a truth value, or anything else that is no integer.
    """
    try:
        if not isinstance(value, bool | np.bool_):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(
        f"{name}: got {value!r} of type {type(value).__name__}, need an int, such as {such_as}"
    )


def take_whole_numbers(settings: Any, *names: str) -> None:
    """Turn these fields of a frozen dataclass into ints, in its `__post_init__`.

    Raises:
        TypeError: one is no integer; see `whole_number`.
    """
    for name in names:
        object.__setattr__(settings, name, whole_number(name, getattr(settings, name), 1))


def check_positive(**values: int) -> None:
    """Each of the named values must be at least 1.

    Raises:
        ValueError: naming the first that is not.
    """
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name}: {value} is below 1")


def check_rank(data_parallel_rank: int, data_parallel_size: int) -> None:
    """The rank must be one of the ranks.

    Raises:
        ValueError: it is not.
    """
    check_positive(data_parallel_size=data_parallel_size)
    if not 0 <= data_parallel_rank < data_parallel_size:
        raise ValueError(
            f"data_parallel_rank: {data_parallel_rank} of data_parallel_size "
            f"{data_parallel_size}; ranks are 0 … {data_parallel_size - 1}"
        )


def check_consumed(consumed_samples: int, total_samples: int) -> None:
    """A run through the data once cannot have consumed more than there is.

    Raises:
        ValueError: it has, or a count is negative.
    """
    if total_samples < 0:
        raise ValueError(f"total_samples: {total_samples} is negative")
    if not 0 <= consumed_samples <= total_samples:
        raise ValueError(
            f"consumed_samples: {consumed_samples} of {total_samples} samples. It must be "
            f"0 … {total_samples} ({total_samples}: nothing is left); is the state from a larger "
            "dataset, or one that went round several times (cyclic)?"
        )


def check_global_batch(
    global_batch_size: int, micro_batch_size: int, data_parallel_size: int
) -> None:
    """Every rank must get the same number of whole micro batches of a global batch.

    Raises:
        ValueError: it does not divide; the text names a size that does.
    """
    step = micro_batch_size * data_parallel_size
    if global_batch_size < 1 or global_batch_size % step:
        fits = max(round(global_batch_size / step), 1) * step
        raise ValueError(
            f"global_batch_size: {global_batch_size} is not a multiple of micro_batch_size x "
            f"data_parallel_size = {micro_batch_size} x {data_parallel_size} = {step}. "
            f"{fits} would work"
        )


def check_batch_number(batch: int, batches: int, name: str) -> None:
    """A batch number must be within 0 … batches.

    Raises:
        IndexError: it is not.
    """
    if not 0 <= batch <= batches:
        raise IndexError(f"{name}: {batch}, but there are {batches} batches from here")
