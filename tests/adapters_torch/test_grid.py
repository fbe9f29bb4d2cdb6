"""Real processes on many shapes of a run: its global batches are the numpy loader's, bit for bit.

Every run has 20 steps of 12 samples. It is stopped at some step and goes on in another shape.
"""

import json
import random

import numpy as np
import pytest
from coredata_torch import LoaderConfig, build_pretraining_data_loader, torch_ranks

from coredata.loading import BatchLoader
from coredata.sampling import GlobalBatchSampler, MegatronPretrainingRandomSampler
from coredata.testing import assert_same_batch, numbered_dataset

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

GLOBAL_BATCH, STEPS, EPOCH = 12, 20, 120
DATASET = numbered_dataset(EPOCH)
LONG = numbered_dataset(GLOBAL_BATCH * STEPS)

RUNS = [
    # ranks, micro batch, workers of each rank; and the same for the continuation
    ((1, 12, 0), (2, 3, 1)),
    ((2, 6, 0), (4, 3, 0)),
    ((4, 1, 0), (1, 4, 2)),
    ((3, 2, 1), (3, 4, 0)),
    ((2, 1, 2), (2, 2, 0)),
]


def _read(rank, kind, ranks, micro, workers, state, steps):
    """What one rank does: the micro batches of some steps, and its state after them."""
    config = LoaderConfig(
        micro,
        rank,
        ranks,
        dataloader_type=kind,
        data_sharding=False,
        global_batch_size=GLOBAL_BATCH,
        num_workers=workers,
        start_method="fork" if workers else None,
    )
    dataset = DATASET if kind == "cyclic" else LONG
    agree = torch_ranks(timeout=30)
    with build_pretraining_data_loader(dataset, 0, config=config, ranks=agree) as loader:
        if state is not None:
            loader.load_state_dict(json.loads(state))
        rounds = steps * (GLOBAL_BATCH // (ranks * micro))
        batches = [{k: v.numpy() for k, v in next(loader).items()} for _ in range(rounds)]
        return batches, json.dumps(loader.state_dict())


def _global_batches(kind, found, steps):
    """The micro batches of all ranks put together, step by step, in the order of the samples."""
    rounds = len(found[0]) // steps
    join = _dealt if kind == "cyclic" else _in_blocks
    for step in range(steps):
        of_rounds = [[rank[step * rounds + i] for rank in found] for i in range(rounds)]
        yield {
            name: np.concatenate([join([batch[name] for batch in ranks]) for ranks in of_rounds])
            for name in of_rounds[0][0]
        }


def _in_blocks(parts):
    return np.concatenate(parts)


def _dealt(parts):
    """The cyclic sampler deals the samples of a round to the ranks in turn."""
    return np.stack(parts, axis=1).reshape(-1, *parts[0].shape[1:])


def _oracle(kind):
    if kind == "cyclic":
        sampler = MegatronPretrainingRandomSampler(EPOCH, 0, GLOBAL_BATCH, 0, 1, False)
        return BatchLoader(DATASET, sampler, prefetch=0)
    return BatchLoader(LONG, GlobalBatchSampler(len(LONG), 0, GLOBAL_BATCH), prefetch=0)


@pytest.mark.parametrize("kind", ["single", "cyclic"])
@pytest.mark.parametrize(("first", "second"), RUNS)
def test_a_stopped_run_goes_on_in_another_shape(run_ranks, kind, first, second):
    stop = random.Random(f"{kind} {first} {second}").randrange(1, STEPS)
    oracle = _oracle(kind)
    state, done = None, 0
    for shape, steps in ((first, stop), (second, STEPS - stop)):
        found = run_ranks(_read, shape[0], kind, *shape, state, steps)
        for failure in found:
            if isinstance(failure, Exception):
                raise failure
        states = {state for _, state in found}
        assert len(states) == 1, "the ranks differ in their state"
        (state,) = states
        for step, batch in enumerate(_global_batches(kind, [b for b, _ in found], steps)):
            what = f"{kind}, {shape} (stopped at {stop}), step {done + step}"
            assert_same_batch(batch, next(oracle), what)
        done += steps
        assert json.loads(state)["consumed_samples"] == done * GLOBAL_BATCH
    assert done == STEPS
