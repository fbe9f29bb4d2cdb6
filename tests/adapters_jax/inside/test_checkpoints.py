"""Orbax saves and restores the state; Grain reads the datasets, and checkpoints our batches."""

import json
from itertools import islice

import grain
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from coredata_jax import ShardedBatches
from meshes import as_numpy, mesh_of, numpy_batches

from coredata.testing import assert_same_array, assert_same_batch

MESH = mesh_of(data=4, model=2)


def test_orbax_keeps_the_state_beside_the_parameters(gpt, tmp_path):
    parameters = {"w": jnp.arange(8.0)}
    expected = numpy_batches(gpt, 8, 6)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        with ShardedBatches(gpt, 8, MESH) as batches:
            list(islice(batches, 4))
            saved = batches.get_state()
            items = {
                "parameters": ocp.args.StandardSave(parameters),
                "data": ocp.args.JsonSave(saved),
            }
            manager.save(4, args=ocp.args.Composite(**items))
        manager.wait_until_finished()
        asked = {"parameters": ocp.args.StandardRestore(parameters), "data": ocp.args.JsonRestore()}
        restored = manager.restore(4, args=ocp.args.Composite(**asked))
    assert restored["data"] == json.loads(json.dumps(saved))
    with ShardedBatches(gpt, 8, mesh_of(data=2, model=4)) as batches:
        batches.set_state(restored["data"])
        for step in (4, 5):
            assert_same_batch(as_numpy(next(batches)), expected[step], f"step {step}")


def test_grain_maps_shuffles_and_batches_a_dataset(gpt):
    source = grain.MapDataset.source(gpt)
    assert len(source) == len(gpt)
    batch = next(iter(source.batch(batch_size=4).to_iter_dataset()))
    assert_same_batch(batch, gpt.get_batch(np.arange(4)), "first batch")
    shuffled = source.shuffle(seed=3).map(lambda sample: int(sample["tokens"].sum()))
    sums = [int(gpt[k]["tokens"].sum()) for k in range(len(gpt))]
    assert sorted(shuffled) == sorted(sums)


def test_grains_data_loader_takes_a_dataset_as_its_source(gpt):
    sampler = grain.samplers.SequentialSampler(
        num_records=8, shard_options=grain.sharding.NoSharding()
    )
    loader = grain.DataLoader(data_source=gpt, sampler=sampler, worker_count=0)
    for number, sample in enumerate(loader):
        assert_same_array(sample["tokens"], gpt[number]["tokens"], f"sample {number}")
    assert number == 7


class AsGrain(grain.DatasetIterator):
    """Our batches as one of Grain's iterators: the three methods have the same shape."""

    def __init__(self, batches: ShardedBatches) -> None:
        super().__init__()
        self.batches = batches

    def __next__(self):
        return next(self.batches)

    def get_state(self):
        return self.batches.get_state()

    def set_state(self, state):
        self.batches.set_state(state)


def test_grains_checkpoints_take_the_state(gpt, tmp_path):
    expected = numpy_batches(gpt, 8, 4)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        with ShardedBatches(gpt, 8, MESH) as batches:
            list(islice(batches, 3))
            manager.save(3, args=grain.checkpoint.CheckpointSave(AsGrain(batches)))
        manager.wait_until_finished()
        with ShardedBatches(gpt, 8, mesh_of(data=8)) as batches:
            restore = grain.checkpoint.CheckpointRestore(AsGrain(batches))
            restored = manager.restore(3, args=restore)
            assert_same_batch(as_numpy(next(restored)), expected[3], "after Grain's restore")
