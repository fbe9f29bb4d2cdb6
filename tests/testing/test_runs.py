from dataclasses import replace

import numpy as np
import pytest

from coredata.loading import BatchLoader
from coredata.sampling import (
    GlobalBatchSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
)
from coredata.testing import (
    ArrayDataset,
    assert_resume_exact,
    assert_same_global_batches,
    numbered_dataset,
)


def cyclic(total):
    def make(rank, size, micro):
        return MegatronPretrainingRandomSampler(total, 0, micro, rank, size, data_sharding=False)

    return make


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize(
    "sampler",
    [
        MegatronPretrainingSampler(20, 0, 2, 1, 2),
        MegatronPretrainingSampler(21, 3, 2, 0, 2, drop_last=False),
        PaddedPretrainingSampler(21, 0, 2, 1, 2),
        GlobalBatchSampler(23, 0, 5, drop_last=False),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_loaders_resume_at_every_step(sampler, prefetch):
    dataset = numbered_dataset(24)
    assert_resume_exact(lambda: BatchLoader(dataset, sampler, prefetch=prefetch), 100)


@pytest.mark.parametrize("sharding", [False, True])
def test_a_cyclic_loader_resumes_at_every_step_of_three_epochs(sharding):
    sampler = MegatronPretrainingRandomSampler(20, 0, 2, 1, 2, data_sharding=sharding)
    dataset = numbered_dataset(20)
    assert_resume_exact(lambda: BatchLoader(dataset, sampler), 15, follow=4)


class Loader:
    """A loader that may lose a batch on resuming."""

    def __init__(self, skip=0, length=6, changed=False):
        self.dataset = numbered_dataset(40)
        self.at = 0
        self.skip = skip
        self.length = length
        self.changed = changed

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= self.length:
            raise StopIteration
        batch = self.dataset.get_batch(np.array([self.at]))
        self.at += 1
        return batch

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"] + (self.skip if state["at"] == 3 else 0)
        self.length += self.changed

    def close(self):
        pass


@pytest.mark.parametrize(
    ("options", "steps", "match"),
    [
        ({"skip": 1}, 10, r"resumed at step 3: batch 3, field tokens\[0, 0\]: is 16, expected 12"),
        ({"skip": 9}, 10, "resumed at step 3: batch 3: there is none; the run ended too early"),
        ({"changed": True}, 10, "resumed at step 0: a batch after the end of the run"),
        ({"length": 0}, 10, "the loader gave no batch"),
    ],
)
def test_a_resume_that_is_not_exact(options, steps, match):
    assert_resume_exact(Loader, steps)
    with pytest.raises(AssertionError, match=match):
        assert_resume_exact(lambda: Loader(**options), steps)


class OnDevice:
    """An array of another library, as a tensor is: numpy can look at it."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("skip", [0, 1])
def test_batches_may_be_of_another_librarys_arrays(skip):
    class Elsewhere(Loader):
        def __next__(self):
            return {name: OnDevice(array) for name, array in super().__next__().items()}

    if skip == 0:
        assert_resume_exact(Elsewhere, 10)
        return
    with pytest.raises(AssertionError, match=r"batch 3, field tokens\[0, 0\]: is 16, expected 12"):
        assert_resume_exact(lambda: Elsewhere(skip=skip), 10)


def test_any_number_of_ranks_sees_the_same_global_batches():
    assert_same_global_batches(numbered_dataset(100), (4, 1, 2, 3, 8))


@pytest.mark.parametrize("steps", [7, 16])
def test_cyclic_ranks_see_the_same_global_batches_into_later_epochs(steps):
    # 120 samples are 5 global batches of 24; stops at step 3 and 8: in epoch 0 and epoch 1
    assert_same_global_batches(
        numbered_dataset(120),
        (4, 1, 2, 3, 8),
        make_sampler=cyclic(120),
        steps=steps,
        ordered=False,
    )


def test_cyclic_rows_are_dealt_out_in_turn():
    with pytest.raises(AssertionError, match="4 ranks with micro batches of 1: global batch 0"):
        assert_same_global_batches(numbered_dataset(120), (4, 1), make_sampler=cyclic(120))


def test_the_last_global_batch_may_be_padded():
    def padded(rank, size, micro):
        return PaddedPretrainingSampler(90, 0, micro, rank, size)

    assert_same_global_batches(numbered_dataset(90), (1, 2, 3, 8), make_sampler=padded, steps=3)


def test_sharding_depends_on_the_ranks_and_its_state_is_refused():
    def sharded(rank, size, micro):
        return replace(cyclic(120)(rank, size, micro), data_sharding=True)

    state = BatchLoader(numbered_dataset(120), sharded(0, 4, 3)).state_dict()
    with pytest.raises(ValueError, match=r"order\.shards: the state has 4, this loader has 2"):
        BatchLoader(numbered_dataset(120), sharded(0, 2, 3)).load_state_dict(state)
    with pytest.raises(ValueError, match=r"order\.micro_batch_size: the state has 6, this loader"):
        assert_same_global_batches(
            numbered_dataset(120), (4, 1), make_sampler=sharded, steps=4, ordered=False
        )


def test_a_sampler_that_gives_two_ranks_the_same():
    def wrong(rank, size, micro):
        return MegatronPretrainingSampler(100, 0, micro, min(rank, 1), size)

    with pytest.raises(
        AssertionError,
        match=r"3 ranks with micro batches of 8: global batch 0, field tokens\[16, 0\]: is 32, e",
    ):
        assert_same_global_batches(numbered_dataset(100), (1, 2, 3), make_sampler=wrong)


def test_ranks_must_divide_the_global_batch():
    with pytest.raises(ValueError, match=r"5 ranks cannot share 24 .* of 120 would work"):
        assert_same_global_batches(numbered_dataset(100), (1, 5))


def test_array_datasets_need_one_length():
    with pytest.raises(ValueError, match=r"needs arrays of one length.*'a': 2, 'b': 3"):
        ArrayDataset({"a": np.zeros(2), "b": np.zeros(3)})
    with pytest.raises(IndexError, match="sample 7 of 5"):
        numbered_dataset(5).get_batch(np.array([1, 7]))
