"""Token values from one dtype to another, without ever changing a value."""

from typing import Any

import numpy as np

from coredata._typing import Shaped
from coredata.formats.errors import TokenError


def converted(
    values: Shaped[np.ndarray, " tokens"], dtype: np.dtype[Any], what: str
) -> Shaped[np.ndarray, " tokens"]:
    """`values` as `dtype`; `what` begins the text of the error.

    Raises:
        TokenError: a value that the dtype cannot hold.
    """
    position = first_misfit(values, dtype)
    if position is None:
        return values.astype(dtype, copy=False)
    raise TokenError(f"{what}: {misfit(values[position], dtype)}")


def first_misfit(values: Shaped[np.ndarray, " tokens"], dtype: np.dtype[Any]) -> int | None:
    """Position of the first value that `dtype` cannot hold, or None.

    Floating-point values may be rounded to a narrower floating-point dtype, but not overflow.
    """
    if values.size == 0 or np.can_cast(values.dtype, dtype, "safe"):
        return None
    if values.dtype.kind in "iu" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = values.min(), values.max()
        if limits.min <= low and high <= limits.max:
            return None
        return int(np.argmax((values < limits.min) | (values > limits.max)))
    with np.errstate(invalid="ignore", over="ignore"):
        back = values.astype(dtype)
    if values.dtype.kind == dtype.kind == "f":
        wrong = np.isinf(back) & ~np.isinf(values)
    else:
        wrong = back != values
    return int(np.argmax(wrong)) if wrong.any() else None


def misfit(value: Any, dtype: np.dtype[Any]) -> str:
    """What is wrong with a value, and which dtype would do."""
    if dtype.kind == "f":
        return f"the value {value} does not fit in {dtype.name}; use float64"
    limits = np.iinfo(dtype)
    one = np.array([value])
    wider = [name for name in ("int32", "int64") if first_misfit(one, np.dtype(name)) is None]
    advice = f"use {wider[0]}" if wider else "no integer dtype of the format holds it"
    span = f"{limits.min} to {limits.max}"
    return f"the token id {value} does not fit in {dtype.name} ({span}); {advice}"


def as_tokens(tokens: Any) -> Shaped[np.ndarray, " tokens"]:
    """Anything that numpy takes for numbers, as a flat array.

    Raises:
        TokenError: something else than numbers of up to 64 bits.
    """
    flat = np.asarray(tokens).reshape(-1)
    if flat.size and flat.dtype.kind not in "iufb":
        raise TokenError(
            f"tokens must be numbers of up to 64 bits, but these have dtype {flat.dtype}; "
            f"the first is {flat[0]!r}"
        )
    return flat
