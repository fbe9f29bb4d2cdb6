"""Arrays and batches compared exactly; what differs is named, with the first place."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def assert_same_array(actual: Any, expected: Any, what: str, *, check_dtype: bool = True) -> None:
    """Two arrays are equal in shape, values, and (unless told otherwise) dtype.

    NaN equals NaN. `what` begins the message.

    Raises:
        AssertionError: they are not; it names the first element that differs.
    """
    got, want = np.asarray(actual), np.asarray(expected)
    if check_dtype and got.dtype != want.dtype:
        raise AssertionError(f"{what}: dtype is {got.dtype}, expected {want.dtype}")
    if got.shape != want.shape:
        raise AssertionError(f"{what}: shape is {got.shape}, expected {want.shape}")
    differs = got != want
    if got.dtype.kind == "f" and want.dtype.kind == "f":
        differs &= ~(np.isnan(got) & np.isnan(want))
    if np.any(differs):
        place = tuple(int(i) for i in np.argwhere(differs)[0])
        where = f"[{', '.join(map(str, place))}]" if place else ""
        raise AssertionError(
            f"{what}{where}: is {got[place]}, expected {want[place]} "
            f"({int(np.sum(differs))} of {differs.size} differ)"
        )


def assert_same_batch(actual: Mapping[str, Any], expected: Mapping[str, Any], what: str) -> None:
    """Two samples or batches have the same fields, equal bit for bit.

    Raises:
        AssertionError: they have not; it names the field and the first element that differs.
    """
    if actual.keys() != expected.keys():
        missing = sorted(expected.keys() - actual.keys())
        surplus = sorted(actual.keys() - expected.keys())
        raise AssertionError(f"{what}: fields missing {missing}, fields not expected {surplus}")
    for field in expected:
        assert_same_array(actual[field], expected[field], f"{what}, field {field}")


def assert_same_bytes(actual: bytes, expected: bytes, what: str) -> None:
    """Two byte strings are equal.

    Raises:
        AssertionError: they are not; it names the first byte that differs, or the lengths.
    """
    if actual == expected:
        return
    common = min(len(actual), len(expected))
    differs = np.flatnonzero(
        np.frombuffer(actual, np.uint8, common) != np.frombuffer(expected, np.uint8, common)
    )
    if len(differs):
        at = int(differs[0])
        raise AssertionError(
            f"{what}: byte {at} is {actual[at]:#04x}, expected {expected[at]:#04x} "
            f"({len(actual)} bytes, expected {len(expected)})"
        )
    raise AssertionError(
        f"{what}: {len(actual)} bytes, expected {len(expected)}; the rest is equal"
    )
