"""Run by `test_wrong_numbers.py` without the checks of annotations: what users hear, as JSON."""

import json
import sys

import numpy as np
from coredata_torch import (
    LoaderConfig,
    PackingConfig,
    PretrainingDataLoader,
    build_pretraining_data_loader,
    build_train_valid_test_data_iterators,
)

from coredata.datasets import BlendedMegatronDatasetConfig, WithoutSamples
from coredata.loading import BatchLoader
from coredata.sampling import (
    BatchSizeRampUp,
    GlobalBatchSampler,
    HybridCPMegatronPretrainingSampler,
    MegatronFullValidationSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
    TrainingSteps,
)
from coredata.testing import numbered_dataset

DATA = numbered_dataset(40)
CONFIG = LoaderConfig(4)
SAMPLER = MegatronPretrainingSampler(40, 0, 4, 0, 1)

CALLS = {
    "build": lambda n: build_pretraining_data_loader(DATA, n, config=CONFIG).consumed_samples,
    "sampler": lambda n: CONFIG.sampler(40, n).consumed_samples,
    "seek": lambda n: BatchLoader(DATA, SAMPLER).seek(n),
    "torch seek": lambda n: PretrainingDataLoader(DATA, SAMPLER).seek(n),
    "sequential": lambda n: MegatronPretrainingSampler(40, n, 4, 0, 1).consumed_samples,
    "micro batch": lambda n: MegatronPretrainingSampler(40, 0, n, 0, 1).micro_batch_size,
    "hybrid": lambda n: HybridCPMegatronPretrainingSampler(40, 0, 4, n, 0, 1).global_batch_size,
    "padded": lambda n: PaddedPretrainingSampler(40, n, 4, 0, 1).consumed_samples,
    "full": lambda n: MegatronFullValidationSampler(40, 0, 1, n).consumed_samples,
    "random": lambda n: MegatronPretrainingRandomSampler(40, n, 4, 0, 1, True).consumed_samples,
    "global": lambda n: GlobalBatchSampler(40, n, 8).consumed_samples,
    "global size": lambda n: GlobalBatchSampler(40, 0, n).global_batch_size,
    "ramp": lambda n: BatchSizeRampUp(n, 4, 10, 8).start_batch_size,
    "steps": lambda n: TrainingSteps(SAMPLER, n).global_batch_size,
    "config": lambda n: LoaderConfig(micro_batch_size=n).micro_batch_size,
    "config global": lambda n: LoaderConfig(1, global_batch_size=n).global_batch_size,
    "config prefetch": lambda n: LoaderConfig(1, prefetch=n).prefetch,
    "room": lambda n: PackingConfig(n).max_seqlen_per_dp_cp_rank,
    "threads": lambda n: BatchLoader(DATA, SAMPLER, threads=n).threads,
    "workers": lambda n: PretrainingDataLoader(DATA, SAMPLER, num_workers=n).num_workers,
    "skip": lambda n: str(WithoutSamples(DATA, [n]).skip),
    "skip array": lambda n: str(WithoutSamples(DATA, np.array([n])).skip),
    "seed": lambda n: BlendedMegatronDatasetConfig(n, 4).random_seed,
    "valid": lambda n: (
        build_train_valid_test_data_iterators(
            lambda sizes: (DATA, DATA, DATA), [1] * 3, config=CONFIG, consumed_valid_samples=n
        ).valid.consumed_samples
    ),
    "valid by name": lambda n: (
        build_train_valid_test_data_iterators(
            lambda sizes: (DATA, {"a": DATA}, DATA),
            [1] * 3,
            config=CONFIG,
            consumed_valid_samples={"a": n},
            multiple_validation_sets=True,
        )
        .valid["a"]
        .consumed_samples
    ),
}
VALUES = {"1.5": 1.5, "4.0": 4.0, "text": "3", "True": True, "None": None, "int64": np.int64(4)}


def heard(call, value):
    try:
        found = call(value)
        return ["ok", found, type(found).__name__]
    except Exception as error:
        return [type(error).__name__, str(error), ""]


answers = {
    name: {text: heard(call, value) for text, value in VALUES.items()}
    for name, call in CALLS.items()
}
json.dump(answers, sys.stdout)
