"""PyTorch on top of coredata: datasets, batch samplers, loaders, ranks, parallel reading.

build_pretraining_data_loader, build_train_valid_test_data_iterators     a run's loaders
PretrainingDataLoader                                                    one loader
TorchDataset, TorchBatchSampler, collate                                 for any DataLoader
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "coredata_torch needs PyTorch, which is not installed: pip install 'coredata[torch]'",
        name="torch",
    ) from error

from coredata_torch.agreement import PlanMismatchError, check_agreement
from coredata_torch.broadcast import BroadcastIterator, ReaderFailedError
from coredata_torch.build import (
    DataIterators,
    build_pretraining_data_loader,
    build_train_valid_test_data_iterators,
)
from coredata_torch.config import LoaderConfig
from coredata_torch.loader import PretrainingDataLoader
from coredata_torch.packing import PackedLoader, PackedStep, PackingConfig, pack_across_ranks
from coredata_torch.peers import PeerFailedError
from coredata_torch.ragged import PaddedToLongest, stack_samples
from coredata_torch.ranks import TorchRanks, torch_ranks
from coredata_torch.samplers import TorchBatchSampler
from coredata_torch.stages import PackedShapes, share_shapes
from coredata_torch.tensors import as_tensors
from coredata_torch.view import FetchedBatch, TorchDataset, collate

__all__ = [
    "BroadcastIterator",
    "DataIterators",
    "FetchedBatch",
    "LoaderConfig",
    "PackedLoader",
    "PackedShapes",
    "PackedStep",
    "PackingConfig",
    "PaddedToLongest",
    "PeerFailedError",
    "PlanMismatchError",
    "PretrainingDataLoader",
    "ReaderFailedError",
    "TorchBatchSampler",
    "TorchDataset",
    "TorchRanks",
    "as_tensors",
    "build_pretraining_data_loader",
    "build_train_valid_test_data_iterators",
    "check_agreement",
    "collate",
    "pack_across_ranks",
    "share_shapes",
    "stack_samples",
    "torch_ranks",
]
