"""Samples as dicts of arrays: the datasets, their configuration, and their index caches."""

from coredata.datasets.bert import BERTMaskedWordPieceDataset
from coredata.datasets.blended import BlendedDataset
from coredata.datasets.builder import BlendedMegatronDatasetBuilder
from coredata.datasets.builder_parts import EmptySplitError
from coredata.datasets.config import BlendedMegatronDatasetConfig
from coredata.datasets.fim import GPTFIMDataset
from coredata.datasets.fim_config import GPTFIMDatasetConfig
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.index_cache import IndexCache, IndexCacheError, IndexCacheWarning
from coredata.datasets.masked import MaskedWordPieceDataset
from coredata.datasets.masked_config import (
    BERTMaskedWordPieceDatasetConfig,
    MaskedWordPieceDatasetConfig,
    T5MaskedWordPieceDatasetConfig,
)
from coredata.datasets.masked_read import SentenceSource
from coredata.datasets.mid_level import MidLevelDataset, MidLevelDatasetClass
from coredata.datasets.mock import MockGPTDataset, MockGPTLowLevelDataset
from coredata.datasets.pack_lengths import cached_lengths, padded_lengths
from coredata.datasets.pack_plans import CachedPlans, CachedSchedule, CachedWindows, KeptPlans
from coredata.datasets.pack_windows import ReadWindows, Schedule, ScheduleWindows
from coredata.datasets.protocol import PADDING, Batch, Dataset, Sample, TokenSource
from coredata.datasets.ranks import (
    RankFailedError,
    RankLostError,
    Ranks,
    SingleProcess,
    build_in_turn,
)
from coredata.datasets.ranks_pipes import PipeRanks, connect_ranks
from coredata.datasets.report import DatasetReport, Report, SplitReport, usage_report
from coredata.datasets.rows import Conversations, ItemList, ItemSource, open_conversations
from coredata.datasets.rows_batch import stack_samples, unstack_samples
from coredata.datasets.rows_check import RowReport, check_samples
from coredata.datasets.rows_loss import LossCounts
from coredata.datasets.rows_show import show_sample
from coredata.datasets.sft import SFTDataset
from coredata.datasets.sft_config import SFTDatasetConfig, VarlenDatasetConfig
from coredata.datasets.sft_mock import MockSFTDataset
from coredata.datasets.sources import ArraySource
from coredata.datasets.t5 import T5MaskedWordPieceDataset
from coredata.datasets.trace import (
    Sightings,
    Trace,
    TracePart,
    samples_of_document,
    steps_of_document,
    trace_samples,
    trace_step,
)
from coredata.datasets.varlen import VarlenDataset, longest_sample
from coredata.datasets.varlen_mock import MockVarlenDataset
from coredata.datasets.without_samples import WithoutSamples

__all__ = [
    "PADDING",
    "ArraySource",
    "BERTMaskedWordPieceDataset",
    "BERTMaskedWordPieceDatasetConfig",
    "Batch",
    "BlendedDataset",
    "BlendedMegatronDatasetBuilder",
    "BlendedMegatronDatasetConfig",
    "CachedPlans",
    "CachedSchedule",
    "CachedWindows",
    "Conversations",
    "Dataset",
    "DatasetReport",
    "EmptySplitError",
    "GPTDataset",
    "GPTDatasetConfig",
    "GPTFIMDataset",
    "GPTFIMDatasetConfig",
    "IndexCache",
    "IndexCacheError",
    "IndexCacheWarning",
    "ItemList",
    "ItemSource",
    "KeptPlans",
    "LossCounts",
    "MaskedWordPieceDataset",
    "MaskedWordPieceDatasetConfig",
    "MidLevelDataset",
    "MidLevelDatasetClass",
    "MockGPTDataset",
    "MockGPTLowLevelDataset",
    "MockSFTDataset",
    "MockVarlenDataset",
    "PipeRanks",
    "RankFailedError",
    "RankLostError",
    "Ranks",
    "ReadWindows",
    "Report",
    "RowReport",
    "SFTDataset",
    "SFTDatasetConfig",
    "Sample",
    "Schedule",
    "ScheduleWindows",
    "SentenceSource",
    "Sightings",
    "SingleProcess",
    "SplitReport",
    "T5MaskedWordPieceDataset",
    "T5MaskedWordPieceDatasetConfig",
    "TokenSource",
    "Trace",
    "TracePart",
    "VarlenDataset",
    "VarlenDatasetConfig",
    "WithoutSamples",
    "build_in_turn",
    "cached_lengths",
    "check_samples",
    "connect_ranks",
    "longest_sample",
    "open_conversations",
    "padded_lengths",
    "samples_of_document",
    "show_sample",
    "stack_samples",
    "steps_of_document",
    "trace_samples",
    "trace_step",
    "unstack_samples",
    "usage_report",
]
