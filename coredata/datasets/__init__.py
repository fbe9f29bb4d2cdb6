"""Samples as dicts of arrays: the datasets, their configuration, and their index caches."""

from coredata.datasets.config import BlendedMegatronDatasetConfig
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.index_cache import IndexCache, IndexCacheError, IndexCacheWarning
from coredata.datasets.mock import MockGPTDataset, MockGPTLowLevelDataset
from coredata.datasets.protocol import PADDING, Batch, Dataset, Sample, TokenSource
from coredata.datasets.sources import ArraySource

__all__ = [
    "PADDING",
    "ArraySource",
    "Batch",
    "BlendedMegatronDatasetConfig",
    "Dataset",
    "GPTDataset",
    "GPTDatasetConfig",
    "IndexCache",
    "IndexCacheError",
    "IndexCacheWarning",
    "MockGPTDataset",
    "MockGPTLowLevelDataset",
    "Sample",
    "TokenSource",
]
