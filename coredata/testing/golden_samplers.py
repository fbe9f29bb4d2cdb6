"""Samplers and PyTorch's permutation, held to the reference's."""

from collections.abc import Callable
from typing import Any

import numpy as np

from coredata.sampling import (
    BatchSampler,
    HybridCPMegatronPretrainingSampler,
    MegatronFullValidationSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    torch_randperm,
)
from coredata.testing.compare import assert_same_array
from coredata.testing.golden_vectors import GoldenCase

_SAMPLERS: dict[str, Callable[..., BatchSampler]] = {
    "sequential": MegatronPretrainingSampler,
    "random": MegatronPretrainingRandomSampler,
    "hybrid": HybridCPMegatronPretrainingSampler,
    "full_validation": MegatronFullValidationSampler,
}
_NOT_ARGUMENTS = {"ranks"}


def assert_golden_samplers(case: GoldenCase) -> None:
    """Every rank's batches, in every setting, are the reference's; so is the permutation.

    Raises:
        AssertionError: something differs; it names the sampler, its settings and the batch.
    """
    for item in case.settings["randperm"]:
        what = f"{case}, randperm({item['n']}, seed {item['seed']})"
        actual = torch_randperm(item["n"], item["seed"])
        assert_same_array(actual, np.array(item["permutation"], np.int64), what)
    for kind, make in _SAMPLERS.items():
        if not case.settings[kind]:
            raise AssertionError(f"{case}, {kind}: no vectors")
        for item in case.settings[kind]:
            given = {name: value for name, value in item.items() if name not in _NOT_ARGUMENTS}
            for rank, expected in enumerate(item["ranks"]):
                sampler = make(**given, data_parallel_rank=rank)
                _assert_batches(sampler, expected, f"{case}, {sampler!r}")


def _assert_batches(sampler: BatchSampler, expected: list[list[int]], what: str) -> None:
    """The batches of one rank; some may be without samples."""
    batches: list[Any] = [batch.tolist() for batch in sampler]
    for number, (actual, wanted) in enumerate(zip(batches, expected, strict=False)):
        if actual != wanted:
            raise AssertionError(f"{what}, batch {number}: is {actual}, expected {wanted}")
    if len(batches) != len(expected):
        raise AssertionError(f"{what}: {len(batches)} batches, expected {len(expected)}")
