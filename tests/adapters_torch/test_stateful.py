"""torchdata's StatefulDataLoader, and torch's own DataLoader, over our datasets and samplers."""

import json

import pytest
from coredata_torch import TorchBatchSampler, TorchDataset, collate
from torch.utils.data import DataLoader

from coredata.loading import BatchLoader, StateMismatchError
from coredata.sampling import MegatronPretrainingRandomSampler, MegatronPretrainingSampler
from coredata.testing import assert_same_batch

pytestmark = [
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]


def sampler(n, consumed=0):
    return MegatronPretrainingRandomSampler(n, consumed, 4, 1, 2, False)


def stateful(dataset, workers):
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(
        TorchDataset(dataset),
        batch_sampler=TorchBatchSampler(sampler(len(dataset)), dataset),
        collate_fn=collate,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )


def assert_follows(batches, dataset, start, steps):
    oracle = BatchLoader(dataset, sampler(len(dataset)), prefetch=0)
    oracle.seek(8 * start)
    for step in range(start, start + steps):
        batch = {name: tensor.numpy() for name, tensor in next(batches).items()}
        assert_same_batch(batch, next(oracle), f"step {step}")


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_data_loader_goes_on_where_it_was(gpt, workers):
    """Past the end of the first epoch, which has 17 steps."""
    loader = stateful(gpt, workers)
    batches = iter(loader)
    assert_follows(batches, gpt, 0, 13)
    state = json.loads(json.dumps(loader.state_dict()))
    again = stateful(gpt, workers)
    again.load_state_dict(state)
    assert_follows(iter(again), gpt, 13, 8)


def test_its_state_of_other_data_is_refused(gpt, numbers):
    loader = stateful(numbers, 0)
    next(iter(loader))
    again = stateful(gpt, 0)
    again.load_state_dict(loader.state_dict())
    with pytest.raises(StateMismatchError):
        iter(again)


def test_a_position_of_the_numpy_loader_starts_an_iteration(gpt):
    """A plain DataLoader cannot be told where it is; the sampler's iterator can."""
    numpy_loader = BatchLoader(gpt, sampler(len(gpt)), prefetch=0)
    for _ in range(5):
        next(numpy_loader)
    batches = iter(TorchBatchSampler(sampler(len(gpt)), gpt))
    batches.load_state_dict(numpy_loader.state_dict())
    assert next(batches) == next(iter(sampler(len(gpt), 40))).tolist()
    assert batches.state_dict()["consumed_samples"] == 48


def test_a_plain_data_loader_with_workers(gpt):
    plan = TorchBatchSampler(MegatronPretrainingSampler(len(gpt), 100, 4, 1, 2))
    loader = DataLoader(
        TorchDataset(gpt),
        batch_sampler=plan,
        collate_fn=collate,
        num_workers=1,
        multiprocessing_context="fork",
    )
    for _ in range(2):  # an iteration starts where the sampler does
        batches = [{k: v.numpy() for k, v in batch.items()} for batch in loader]
        oracle = BatchLoader(gpt, plan.sampler, prefetch=0)
        assert len(batches) == len(loader) == 5
        for batch in batches:
            assert_same_batch(batch, next(oracle), "batch")
