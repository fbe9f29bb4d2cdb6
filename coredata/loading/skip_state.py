"""Going on from a state with another list of skipped samples."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coredata.loading.state import make_state, read_place, read_state
from coredata.sampling import SkipList


def state_with_skip_list(state: Mapping[str, Any], skip: SkipList) -> dict[str, Any]:
    """The state of a loader that stands at the same place, but passes over `skip` from here on.

    For a run that is to go on from before a bad stretch of data and around it. The place is kept
    exactly: what comes next is the first sample after the last one that was read, and all that
    follow, but for those on the new list (which replaces the old one). Numbers are those of the
    whole dataset, without any skip list.

    `consumed_samples` becomes the number of samples before that place which the new list keeps: the
    same as before if both lists agree there. Where that number alone does not tell the place,
    because the new list passes over the samples right before it, the state says it (`read_place`):
    lists may follow each other, also with nothing read between them.

    Args:
        state: what `state_dict()` gave, over a dataset with or without a skip list.
        skip: the new list.

    Raises:
        ValueError: the state is malformed, or its place is not where its samples end; its order is
            not sequential, so that with another list the order would be another one; or a number
            beyond the dataset.
    """
    fingerprint = dict(state["fingerprint"]) if "fingerprint" in state else {}
    consumed = read_state(state, fingerprint)
    order = dict(fingerprint.get("order", {}))
    if order.get("order") != "sequential":
        raise ValueError(
            f"the state is of the order {order.get('order')!r}; only a sequential one stays the "
            "same with another skip list. Start a loader over the dataset with the new list instead"
        )
    old = SkipList.parse(fingerprint.pop("skipped_samples", ""))
    total = int(order["total_samples"]) + len(old)
    if skip.end > total:
        raise ValueError(
            f"skip: sample {skip.end - 1} is to be skipped, but the dataset has {total} samples, "
            f"numbered 0 to {total - 1}"
        )
    place = _place(state, old, consumed)
    order["total_samples"] = total - len(skip)
    if skip.ranges:
        fingerprint["skipped_samples"] = str(skip)
    kept = place - int(skip.skipped_below(np.array([place], np.int64))[0])
    changed = {**fingerprint, "order": order}
    return make_state(kept, changed, None if place == _after(skip, kept) else place)


def _place(state: Mapping[str, Any], skip: SkipList, consumed: int) -> int:
    """The sample of the whole dataset before which a state with this list stands."""
    least, told = _after(skip, consumed), read_place(state)
    if told is None:
        return least
    most = int(skip.kept(np.array([consumed], np.int64))[0])
    if not least <= told <= most:
        raise ValueError(
            f"the loader state stands before sample {told} of the whole dataset, but with "
            f"consumed_samples {consumed} it is one of {least} to {most}. Pass the dict that "
            "state_dict() or state_with_skip_list() returned, unchanged"
        )
    return told


def _after(skip: SkipList, consumed: int) -> int:
    """The sample after the last of so many that a list keeps."""
    return int(skip.kept(np.array([consumed - 1], np.int64))[0]) + 1 if consumed else 0
