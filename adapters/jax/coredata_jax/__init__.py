"""JAX on top of coredata: batches as global `jax.Array`s over a device mesh."""

import coredata_jax._require  # noqa: F401
from coredata_jax.agreement import PlanMismatchError, check_same_plan
from coredata_jax.batches import SEQUENCE_FIELDS, ShardedBatches
from coredata_jax.layout import BatchLayout, DeviceShare
from coredata_jax.ranks import JaxRanks
from coredata_jax.sequence_order import SequenceOrder, load_balanced_order

__all__ = [
    "SEQUENCE_FIELDS",
    "BatchLayout",
    "DeviceShare",
    "JaxRanks",
    "PlanMismatchError",
    "SequenceOrder",
    "ShardedBatches",
    "check_same_plan",
    "load_balanced_order",
]
