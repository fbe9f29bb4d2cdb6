"""Which tokens make sample k: splits, documents, samples, shuffle. Pure arrays, no files."""

from coredata.indices.document_index import build_document_index, document_index_dtype
from coredata.indices.epochs import (
    SEPARATE_FINAL_EPOCH_THRESHOLD,
    EpochPlan,
    FinalEpoch,
    final_epoch,
    number_of_epochs,
    number_of_samples,
    plan_epochs,
)
from coredata.indices.gpt import GPTIndices, build_gpt_indices, tokens_per_epoch
from coredata.indices.indexed_order import IndexedOrder, find_spans
from coredata.indices.mt19937 import mt19937_seed, next32, shuffle_in_place
from coredata.indices.mt19937_64 import mt19937_64_seed, next64, shuffle_rows
from coredata.indices.order import SampleOrder, SampleSpans
from coredata.indices.sample_index import build_sample_index, sample_index_dtype
from coredata.indices.sentence_documents import (
    LONGEST_SENTENCE,
    DocumentCounts,
    qualifying_documents,
)
from coredata.indices.sentence_map import (
    SentenceSettings,
    build_sentence_map,
    sentence_map_dtype,
)
from coredata.indices.shuffle_index import build_shuffle_index, shuffle_index_dtype
from coredata.indices.splits import (
    Bookends,
    Split,
    convert_split_vector_to_split_matrix,
    parse_and_normalize_split,
    split_range,
)

__all__ = [
    "LONGEST_SENTENCE",
    "SEPARATE_FINAL_EPOCH_THRESHOLD",
    "Bookends",
    "DocumentCounts",
    "EpochPlan",
    "FinalEpoch",
    "GPTIndices",
    "IndexedOrder",
    "SampleOrder",
    "SampleSpans",
    "SentenceSettings",
    "Split",
    "build_document_index",
    "build_gpt_indices",
    "build_sample_index",
    "build_sentence_map",
    "build_shuffle_index",
    "convert_split_vector_to_split_matrix",
    "document_index_dtype",
    "final_epoch",
    "find_spans",
    "mt19937_64_seed",
    "mt19937_seed",
    "next32",
    "next64",
    "number_of_epochs",
    "number_of_samples",
    "parse_and_normalize_split",
    "plan_epochs",
    "qualifying_documents",
    "sample_index_dtype",
    "sentence_map_dtype",
    "shuffle_in_place",
    "shuffle_index_dtype",
    "shuffle_rows",
    "split_range",
    "tokens_per_epoch",
]
