"""The state of a loader: how far it is, and in what. One small dict of JSON values.

It knows no rank, worker, host or framework, so that any of them can continue from it.
"""

import json
import operator
from collections.abc import Mapping
from typing import Any

STATE_VERSION = 1
"""The version written; the only one read so far."""

_ABSENT = "(absent)"

_LATER = frozenset(("special_ids",))
"""Entries of fingerprints that states did not always have: one that lacks them is taken."""


class StateMismatchError(ValueError):
    """A state that was saved over another dataset, or order of it, than it is loaded into."""


def make_state(
    consumed_samples: int, fingerprint: Mapping[str, Any], place: int | None = None
) -> dict[str, Any]:
    """The state after `consumed_samples` samples, counted over all ranks, of a dataset.

    Args:
        consumed_samples: samples.
        fingerprint: of the dataset and its order.
        place: where in the whole dataset that is; see `read_place`.

    Raises:
        TypeError: the fingerprint holds something JSON cannot.
    """
    state = {
        "version": STATE_VERSION,
        "consumed_samples": int(consumed_samples),
        "fingerprint": _plain(fingerprint),
    }
    return state if place is None else {**state, "place": int(place)}


def read_place(state: Mapping[str, Any]) -> int | None:
    """The sample of the whole dataset before which a state stands, where it says so.

    It does where samples right before it are on a skip list that was put into the state after they
    were passed or read: `consumed_samples` alone would stand before them. The next list that is put
    in may have to know (`state_with_skip_list`); loaders need not, and hand it on until they read.

    Raises:
        ValueError: it is no whole number.
    """
    return _count(state, "place") if "place" in state else None


def read_state(state: Any, fingerprint: Mapping[str, Any]) -> int:
    """The consumed samples in `state`, after checking that it is about this dataset.

    Numbers may have become numpy scalars or 0-d arrays and tuples lists on the way, as
    checkpoint libraries make them. Keys this version does not know are ignored.

    Raises:
        TypeError: the state is not a mapping.
        ValueError: a part is missing or malformed, or the version is unknown.
        StateMismatchError: the state belongs to another dataset; it names each difference.
    """
    if not isinstance(state, Mapping):
        raise TypeError(
            f"a loader state is a dict, as state_dict() returns it; got {type(state).__name__}"
        )
    missing = [key for key in ("version", "consumed_samples", "fingerprint") if key not in state]
    if missing:
        raise ValueError(
            f"the loader state lacks {', '.join(missing)}; it has the keys "
            f"{sorted(map(str, state))}. Pass the whole dict that state_dict() returned"
        )
    version = _count(state, "version")
    if version != STATE_VERSION:
        raise ValueError(
            f"the loader state has version {version}; this coredata reads version "
            f"{STATE_VERSION}. Load it with the coredata that wrote it, or a newer one"
        )
    consumed = _count(state, "consumed_samples")
    saved = state["fingerprint"]
    if not isinstance(saved, Mapping):
        raise ValueError(
            f"the loader state's fingerprint is a {type(saved).__name__}, expected a dict. "
            "Pass the whole dict that state_dict() returned"
        )
    differences = fingerprint_differences(saved, fingerprint)
    if differences:
        raise StateMismatchError(
            "the loader state was saved over another dataset or order:\n  "
            + "\n  ".join(differences)
            + "\nLoad it over the dataset and the order it was saved with. To go on with these all "
            f"the same, make the loader with what sampler.resume({consumed}) returns, a sampler "
            "that begins there, and load no state"
        )
    return consumed


def fingerprint_differences(saved: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """One line for each field in which two fingerprints differ, in the order of the fields.

    What fingerprints came to hold later (end and pad ids) may be absent from the saved one.
    """
    old, new = _flat(_plain(saved)), _flat(_plain(present))
    return [
        f"{field}: the state has {_show(old, field)}, this loader has {_show(new, field)}"
        for field in dict.fromkeys([*old, *new])
        if (field in old or field not in _LATER)
        and (field not in old or field not in new or old[field] != new[field])
    ]


def _show(fields: dict[str, Any], field: str) -> str:
    """The value of a field, as in JSON, or that it is not there."""
    return json.dumps(fields[field]) if field in fields else _ABSENT


def _count(state: Mapping[str, Any], key: str) -> int:
    """A non-negative whole number of the state."""
    value = state[key]
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise ValueError(
            f"the loader state's {key} is {value!r}, expected a whole number, 0 or more. "
            "Pass the dict that state_dict() returned, unchanged"
        )
    return number


def _plain(value: Any) -> Any:
    """A value as JSON would give it back: mappings as dicts, sequences as lists."""
    return json.loads(json.dumps(value, default=_unwrap))


def _unwrap(value: Any) -> Any:
    """What JSON does not know: mappings that are no dicts, numpy scalars and arrays."""
    if isinstance(value, Mapping):
        return dict(value)
    tolist = getattr(value, "tolist", None)
    if tolist is None:
        raise TypeError(
            f"a fingerprint holds a {type(value).__name__}, {value!r}, which JSON cannot hold; "
            "use numbers, strings, lists and dicts"
        )
    return tolist()


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Nested dicts as one, the names joined with dots."""
    if not isinstance(value, dict) or not (value or not name):
        return {name: value}
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat.update(_flat(item, f"{name}.{key}" if name else key))
    return flat
