"""Samples as dicts of arrays: the datasets, their configuration, and their index caches."""

from coredata.datasets.config import BlendedMegatronDatasetConfig
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.protocol import PADDING, Batch, Dataset, Sample, TokenSource

__all__ = [
    "PADDING",
    "Batch",
    "BlendedMegatronDatasetConfig",
    "Dataset",
    "GPTDatasetConfig",
    "Sample",
    "TokenSource",
]
