"""Samples of varying length as pure functions: rows to samples, samples to packs, packs to ranks.

From rows to messages (schemas), and from their tokens to single samples or packs of conversations.
From lengths to a `PackPlan` (which samples share a row), from a plan and samples to packed
sequences with their boundaries, and from boundaries to the positions that a context-parallel rank
holds. Nothing here reads or communicates.
"""

from coredata.varlen.alignment import align, alignment
from coredata.varlen.balance import COSTS, balance_rows, row_costs
from coredata.varlen.compare import PackingReport, compare_packers, packing_table
from coredata.varlen.context_parallel import context_parallel_partition, inverse_partition
from coredata.varlen.conversations import (
    LossFacts,
    Tokenized,
    check_tokenized,
    loss_facts,
    split_conversations,
)
from coredata.varlen.dp_balanced import dp_balanced, rank_groups
from coredata.varlen.layout import cu_seqlens, places, position_ids, segment_ids
from coredata.varlen.lengths import MockLengths, parse_lengths
from coredata.varlen.microbatch import (
    TokenCounts,
    boundaries,
    clear_padding,
    pack_samples,
    padding_mask,
    token_counts,
    unpack_samples,
)
from coredata.varlen.mock_samples import (
    counting_tokens,
    mock_fixed_sample,
    mock_packed_sample,
    mock_single_sample,
)
from coredata.varlen.pack import PACKERS, pack, pack_segments
from coredata.varlen.plan import PackPlan, concatenate
from coredata.varlen.samples import fixed_sample, limit_tokens, single_sample
from coredata.varlen.schemas import (
    SCHEMAS,
    convert_row,
    detect_schema,
    raw_messages,
    schema_columns,
)
from coredata.varlen.segments import (
    OVERFLOWS,
    FittedSegments,
    Segments,
    fit_to_limit,
    whole_samples,
)
from coredata.varlen.sft import pack_conversations
from coredata.varlen.windows import PackWindows, RowPosition, SampleLengths

__all__ = [
    "COSTS",
    "OVERFLOWS",
    "PACKERS",
    "SCHEMAS",
    "FittedSegments",
    "LossFacts",
    "MockLengths",
    "PackPlan",
    "PackWindows",
    "PackingReport",
    "RowPosition",
    "SampleLengths",
    "Segments",
    "TokenCounts",
    "Tokenized",
    "align",
    "alignment",
    "balance_rows",
    "boundaries",
    "check_tokenized",
    "clear_padding",
    "compare_packers",
    "concatenate",
    "context_parallel_partition",
    "convert_row",
    "counting_tokens",
    "cu_seqlens",
    "detect_schema",
    "dp_balanced",
    "fit_to_limit",
    "fixed_sample",
    "inverse_partition",
    "limit_tokens",
    "loss_facts",
    "mock_fixed_sample",
    "mock_packed_sample",
    "mock_single_sample",
    "pack",
    "pack_conversations",
    "pack_samples",
    "pack_segments",
    "packing_table",
    "padding_mask",
    "parse_lengths",
    "places",
    "position_ids",
    "rank_groups",
    "raw_messages",
    "row_costs",
    "schema_columns",
    "segment_ids",
    "single_sample",
    "split_conversations",
    "token_counts",
    "unpack_samples",
    "whole_samples",
]
