"""Packing samples of varying length, and sharing packs among ranks, as pure functions.

From lengths to a `PackPlan` (which samples share a row), from a plan and samples to packed
sequences with their boundaries, and from boundaries to the positions that a context-parallel rank
holds. Nothing here reads or communicates.
"""

from coredata.varlen.alignment import align, alignment
from coredata.varlen.balance import COSTS, balance_rows, row_costs
from coredata.varlen.compare import PackingReport, compare_packers, packing_table
from coredata.varlen.context_parallel import context_parallel_partition, inverse_partition
from coredata.varlen.dp_balanced import dp_balanced, rank_groups
from coredata.varlen.layout import cu_seqlens, places, position_ids, segment_ids
from coredata.varlen.microbatch import (
    TokenCounts,
    boundaries,
    clear_padding,
    pack_samples,
    padding_mask,
    token_counts,
    unpack_samples,
)
from coredata.varlen.pack import PACKERS, pack, pack_segments
from coredata.varlen.plan import PackPlan, concatenate
from coredata.varlen.segments import (
    OVERFLOWS,
    FittedSegments,
    Segments,
    fit_to_limit,
    whole_samples,
)
from coredata.varlen.windows import PackWindows, RowPosition, SampleLengths

__all__ = [
    "COSTS",
    "OVERFLOWS",
    "PACKERS",
    "FittedSegments",
    "PackPlan",
    "PackWindows",
    "PackingReport",
    "RowPosition",
    "SampleLengths",
    "Segments",
    "TokenCounts",
    "align",
    "alignment",
    "balance_rows",
    "boundaries",
    "clear_padding",
    "compare_packers",
    "concatenate",
    "context_parallel_partition",
    "cu_seqlens",
    "dp_balanced",
    "fit_to_limit",
    "inverse_partition",
    "pack",
    "pack_samples",
    "pack_segments",
    "packing_table",
    "padding_mask",
    "places",
    "position_ids",
    "rank_groups",
    "row_costs",
    "segment_ids",
    "token_counts",
    "unpack_samples",
    "whole_samples",
]
