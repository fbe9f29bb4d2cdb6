"""Batches on one host: read ahead, in order, with a state that continues anywhere."""

from coredata.loading.loader import BatchLoader
from coredata.loading.position import Loader, full_fingerprint
from coredata.loading.skip_state import state_with_skip_list
from coredata.loading.state import (
    STATE_VERSION,
    StateMismatchError,
    fingerprint_differences,
    make_state,
    read_place,
    read_state,
)

__all__ = [
    "STATE_VERSION",
    "BatchLoader",
    "Loader",
    "StateMismatchError",
    "fingerprint_differences",
    "full_fingerprint",
    "make_state",
    "read_place",
    "read_state",
    "state_with_skip_list",
]
