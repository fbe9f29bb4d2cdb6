"""What a row of raw text data is, and what a bad one gets."""

from collections.abc import Mapping
from typing import Any

from coredata.storage import StorageError

NOT_DAMAGE = (StorageError, FileNotFoundError, PermissionError)
"""Errors of storage that say nothing about what is in a file."""

_SHOWN_KEYS = 8


class RowError(ValueError):
    """One row cannot be used; the text is the reason, without the place.

    Whoever reads rows knows the place (file, line or row number, offset) and adds it.
    """


class DamagedFileError(ValueError):
    """A file, not one row of it, is broken: truncated, corrupt, or not what its name says."""


def kind_of(value: object) -> str:
    """How JSON calls `value`: "null", "a number", "a list", …"""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return f"a value of type {type(value).__name__}"


def texts_of(row: Mapping[str, Any], key: str) -> list[str]:
    """The texts under `key`: a string by itself, or the strings of a list.

    Raises:
        RowError: the key is missing, or its value is anything else.
    """
    if key not in row:
        raise RowError(f'no key "{key}"; the row has {_listed(row)}')
    value = row[key]
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        for position, item in enumerate(value):
            if not isinstance(item, str):
                raise RowError(
                    f'item {position} of the list under "{key}" is {kind_of(item)}; '
                    "a list must hold strings only"
                )
        return value
    raise RowError(
        f'the value under "{key}" is {kind_of(value)}, not a string or a list of strings'
    )


def _listed(row: Mapping[str, Any]) -> str:
    names = [f'"{name}"' for name in list(row)[:_SHOWN_KEYS]]
    more = len(row) - len(names)
    return (", ".join(names) or "none") + (f" and {more} more" if more else "")
