"""Every sampler and permutation of the reference, batch by batch."""

import json
from importlib.resources import files

import numpy as np
import pytest

from coredata.sampling import (
    HybridCPMegatronPretrainingSampler,
    MegatronFullValidationSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    torch_randperm,
)

GOLDEN = json.loads((files("coredata") / "testing/golden/samplers/samplers.json").read_text())
SAMPLERS = {
    "full_validation": MegatronFullValidationSampler,
    "hybrid": HybridCPMegatronPretrainingSampler,
    "random": MegatronPretrainingRandomSampler,
    "sequential": MegatronPretrainingSampler,
}
CASES = [(name, i) for name in SAMPLERS for i in range(len(GOLDEN[name]))]


def test_golden_cases_are_there():
    assert set(GOLDEN) == {*SAMPLERS, "randperm"}
    assert len(CASES) == 18
    assert len(GOLDEN["randperm"]) == 3


@pytest.mark.parametrize(("name", "i"), CASES)
def test_batches_match_the_reference(name, i):
    settings = dict(GOLDEN[name][i])
    for rank, expected in enumerate(settings.pop("ranks")):
        sampler = SAMPLERS[name](data_parallel_rank=rank, **settings)
        batches = list(sampler)
        assert [batch.tolist() for batch in batches] == expected
        assert all(batch.dtype == np.int64 for batch in batches)
        assert len(sampler) == len(expected)


@pytest.mark.parametrize("case", GOLDEN["randperm"], ids=lambda case: str(case["n"]))
def test_permutations_match_the_reference(case):
    assert torch_randperm(case["n"], case["seed"]).tolist() == case["permutation"]
