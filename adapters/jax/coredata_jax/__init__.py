"""JAX on top of coredata: batches as global `jax.Array`s over a device mesh."""

import coredata_jax._require  # noqa: F401
from coredata_jax.agreement import PlanMismatchError, check_same_plan
from coredata_jax.batches import ShardedBatches
from coredata_jax.layout import BatchLayout, DeviceShare
from coredata_jax.packed import PackedBatches
from coredata_jax.packed_plans import Plans, Windows
from coredata_jax.packed_rows import PackedRows
from coredata_jax.packed_sampler import RowSampler
from coredata_jax.ranks import JaxRanks
from coredata_jax.sequence_order import SequenceOrder, load_balanced_order
from coredata_jax.sharded import SEQUENCE_FIELDS, ShardedLoader

__all__ = [
    "SEQUENCE_FIELDS",
    "BatchLayout",
    "DeviceShare",
    "JaxRanks",
    "PackedBatches",
    "PackedRows",
    "PlanMismatchError",
    "Plans",
    "RowSampler",
    "SequenceOrder",
    "ShardedBatches",
    "ShardedLoader",
    "Windows",
    "check_same_plan",
    "load_balanced_order",
]
