"""Which samples a rank takes, in what order, from where on. Pure values, no files."""

from coredata.sampling.counters import consumed_samples, resume_each
from coredata.sampling.full_validation import MegatronFullValidationSampler
from coredata.sampling.global_batch import GlobalBatchSampler
from coredata.sampling.protocol import PADDING, BatchSampler, Order
from coredata.sampling.ramp_up import BatchSizeRampUp
from coredata.sampling.random import MegatronPretrainingRandomSampler
from coredata.sampling.randperm import torch_randperm
from coredata.sampling.sequential import (
    HybridCPMegatronPretrainingSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
)
from coredata.sampling.skip_list import SkipList
from coredata.sampling.training_steps import Takings, TrainingSteps

__all__ = [
    "PADDING",
    "BatchSampler",
    "BatchSizeRampUp",
    "GlobalBatchSampler",
    "HybridCPMegatronPretrainingSampler",
    "MegatronFullValidationSampler",
    "MegatronPretrainingRandomSampler",
    "MegatronPretrainingSampler",
    "Order",
    "PaddedPretrainingSampler",
    "SkipList",
    "Takings",
    "TrainingSteps",
    "consumed_samples",
    "resume_each",
    "torch_randperm",
]
