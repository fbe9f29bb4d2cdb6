"""Samples as dicts of arrays: the datasets, their configuration, and their index caches."""

from coredata.datasets.blended import BlendedDataset
from coredata.datasets.builder import BlendedMegatronDatasetBuilder
from coredata.datasets.builder_parts import EmptySplitError
from coredata.datasets.config import BlendedMegatronDatasetConfig
from coredata.datasets.fim import GPTFIMDataset
from coredata.datasets.fim_config import GPTFIMDatasetConfig
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.index_cache import IndexCache, IndexCacheError, IndexCacheWarning
from coredata.datasets.mid_level import MidLevelDataset, MidLevelDatasetClass
from coredata.datasets.mock import MockGPTDataset, MockGPTLowLevelDataset
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
from coredata.datasets.sources import ArraySource

__all__ = [
    "PADDING",
    "ArraySource",
    "Batch",
    "BlendedDataset",
    "BlendedMegatronDatasetBuilder",
    "BlendedMegatronDatasetConfig",
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
    "MidLevelDataset",
    "MidLevelDatasetClass",
    "MockGPTDataset",
    "MockGPTLowLevelDataset",
    "PipeRanks",
    "RankFailedError",
    "RankLostError",
    "Ranks",
    "Report",
    "Sample",
    "SingleProcess",
    "SplitReport",
    "TokenSource",
    "build_in_turn",
    "connect_ranks",
    "usage_report",
]
