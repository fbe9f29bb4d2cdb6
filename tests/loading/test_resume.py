"""A run on 4 ranks, stopped and continued on 1, 2, 3 and 8, against one never interrupted."""

import json

import numpy as np
import pytest

from coredata.loading import BatchLoader
from coredata.sampling import (
    BatchSizeRampUp,
    GlobalBatchSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
)
from coredata.testing import assert_same_batch
from coredata.testing.golden_gpt import golden_gpt_dataset
from coredata.testing.golden_vectors import golden_case

GLOBAL_BATCH = 24


@pytest.fixture(scope="module")
def dataset():
    return golden_gpt_dataset(golden_case("gpt", "multi_epoch_separate"))  # 141 samples


def sequential(total, rank, size, micro):
    return MegatronPretrainingSampler(total, 0, micro, rank, size)


def cyclic(total, rank, size, micro):
    return MegatronPretrainingRandomSampler(total, 0, micro, rank, size, data_sharding=False)


class Ranks:
    """All ranks of a run; each has a loader with prefetch."""

    def __init__(self, dataset, make, total, size, micro, state=None):
        self.loaders = [
            BatchLoader(dataset, make(total, rank, size, micro), prefetch=2) for rank in range(size)
        ]
        self.rounds = GLOBAL_BATCH // (size * micro)
        self.dealt = make is cyclic
        for loader in self.loaders if state else ():
            loader.load_state_dict(state)

    def step(self):
        """One global batch, its rows in the order of the samples."""
        rounds = [[next(loader) for loader in self.loaders] for _ in range(self.rounds)]
        if not self.dealt:
            parts = [part for ranks in rounds for part in ranks]
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        # the cyclic sampler deals the samples of a round out to the ranks in turn
        return {
            name: np.concatenate(
                [np.stack([part[name] for part in ranks], axis=1) for ranks in rounds]
            ).reshape(GLOBAL_BATCH, *rounds[0][0][name].shape[1:])
            for name in rounds[0][0]
        }

    def state(self):
        states = [json.dumps(loader.state_dict()) for loader in self.loaders]
        assert set(states) == {states[0]}  # a state does not know its rank
        return json.loads(states[0])

    def close(self):
        for loader in self.loaders:
            loader.close()


@pytest.mark.parametrize(
    ("make", "total", "steps", "stop"),
    [
        (sequential, 141, 5, 2),
        (cyclic, 120, 13, 8),  # 5 steps an epoch: stops in the middle of the second
        (cyclic, 120, 12, 10),  # at the very end of the second
    ],
)
@pytest.mark.parametrize(("size", "micro"), [(1, 24), (1, 3), (2, 4), (3, 8), (3, 1), (8, 3)])
def test_on_other_ranks_bit_for_bit(dataset, make, total, steps, stop, size, micro):
    first = Ranks(dataset, make, total, 4, 6)
    expected = []
    for step in range(steps):
        if step == stop:
            state = first.state()
        expected.append(first.step())
    first.close()

    assert state["consumed_samples"] == stop * GLOBAL_BATCH
    other = Ranks(dataset, make, total, size, micro, state)
    for step in range(stop, steps):
        assert_same_batch(other.step(), expected[step], f"global batch {step}")
    other.close()


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_at_the_end(dataset, size):
    first = BatchLoader(dataset, PaddedPretrainingSampler(141, 0, 6, 0, 4))
    batches = sum(1 for _ in first)
    state = first.state_dict()
    assert batches == 6  # 141 samples in blocks of 24
    assert state["consumed_samples"] == 141
    for rank in range(size):
        with BatchLoader(dataset, PaddedPretrainingSampler(141, 0, 2, rank, size)) as other:
            other.load_state_dict(state)
            assert list(other) == []
            assert other.state_dict() == state


def test_in_the_middle_of_a_ramp(dataset):
    ramp = BatchSizeRampUp(4, 4, 60, 24)

    def loader(prefetch=2):
        return BatchLoader(dataset, GlobalBatchSampler(141, 0, ramp), prefetch=prefetch)

    with loader() as whole:
        states, batches = [], []
        for batch in whole:
            batches.append(batch)
            states.append(whole.state_dict())
    sizes = [len(batch["tokens"]) for batch in batches]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 3
    assert [state["consumed_samples"] for state in states] == np.cumsum(sizes).tolist()
    for step in range(1, len(batches)):
        with loader() as resumed:
            resumed.load_state_dict(states[step - 1])
            assert_same_batch(next(resumed), batches[step], f"step {step}")


def test_between_the_steps_of_the_new_ranks_it_says_where_it_could():
    made = cyclic(120, 0, 4, 2)
    state = {"version": 1, "consumed_samples": 8, "fingerprint": {}}
    dataset = golden_gpt_dataset(golden_case("gpt", "multi_epoch_separate"))
    with BatchLoader(dataset, made) as loader:
        state["fingerprint"] = loader.state_dict()["fingerprint"]
    with (
        BatchLoader(dataset, cyclic(120, 0, 3, 4)) as other,
        pytest.raises(ValueError, match=r"Resume from 0 or 12, or with a step that divides 8"),
    ):
        other.load_state_dict(state)
