"""Whatever the mesh, the global batches are those of the numpy loader, also after a resume."""

import json
from itertools import islice

import numpy as np
import pytest
from coredata_jax import ShardedBatches
from jax.sharding import PartitionSpec
from meshes import Watched, as_numpy, mesh_of, numpy_batches, numpy_loader

from coredata.testing import assert_same_batch

STEPS = 20
SIZE = 8

# name -> (mesh, data axes, sequence axis, load balanced)
GRID = {
    "one device": ({"data": 1}, "data", None, False),
    "data": ({"data": 8}, "data", None, False),
    "data x model": ({"data": 4, "model": 2}, "data", None, False),
    "model x data": ({"model": 4, "data": 2}, ("data",), None, False),
    "replica x data": ({"replica": 2, "data": 2, "model": 2}, ("replica", "data"), None, False),
    "axes turned round": ({"replica": 2, "data": 4}, ("data", "replica"), None, False),
    "no data axis": ({"model": 4}, (), None, False),
    "sequence": ({"data": 2, "sequence": 4}, "data", "sequence", False),
    "sequence x data": ({"sequence": 2, "data": 2, "model": 2}, "data", "sequence", False),
    "sequence alone": ({"sequence": 8}, (), "sequence", False),
    "balanced": ({"data": 2, "sequence": 4}, "data", "sequence", True),
    "balanced x model": ({"model": 2, "sequence": 2, "data": 2}, "data", "sequence", True),
}


def batches_on(case: str, dataset, **options) -> ShardedBatches:
    axes, data_axes, sequence_axis, balanced = GRID[case]
    return ShardedBatches(
        dataset,
        SIZE,
        mesh_of(**axes),
        data_axes,
        sequence_axis,
        load_balanced=balanced,
        **options,
    )


def assert_batches(batches: ShardedBatches, expected: list, what: str) -> None:
    back = batches.sequence_order(16).inverse if batches.load_balanced else None
    got = list(islice(batches, len(expected)))
    assert len(got) == len(expected), what
    for step, batch in enumerate(got):
        assert_same_batch(as_numpy(batch, back), expected[step], f"{what}: step {step}")


@pytest.fixture(scope="module")
def expected(gpt):
    return numpy_batches(gpt, SIZE, STEPS)


@pytest.mark.parametrize("case", GRID)
def test_the_global_batches_are_the_numpy_loaders(gpt, expected, case):
    with batches_on(case, gpt) as batches:
        assert_batches(batches, expected, case)


@pytest.mark.parametrize("number", range(len(GRID)))
def test_a_run_stops_anywhere_and_goes_on_on_any_other_mesh(gpt, expected, number):
    random = np.random.default_rng(number)
    before, after = list(GRID)[number], str(random.choice(list(GRID)))
    stop = int(random.integers(1, STEPS))
    with batches_on(before, gpt) as batches:
        assert_batches(batches, expected[:stop], before)
        state = json.loads(json.dumps(batches.get_state()))
    with batches_on(after, gpt) as batches:
        batches.set_state(state)
        assert_batches(batches, expected[stop:], f"from {before} to {after} at step {stop}")


def test_a_run_moves_from_the_numpy_loader_and_back(gpt, expected):
    with numpy_loader(gpt, SIZE) as loader:
        list(islice(loader, 3))
        state = loader.state_dict()
    with batches_on("data x model", gpt) as batches:
        batches.load_state_dict(state)
        assert batches.state_dict() == state
        assert_batches(batches, expected[3:7], "from numpy")
        state = batches.state_dict()
    with numpy_loader(gpt, SIZE) as loader:
        loader.load_state_dict(state)
        np.testing.assert_array_equal(next(loader)["tokens"], expected[7]["tokens"])


@pytest.mark.parametrize("case", GRID)
def test_every_row_is_read_once_however_many_devices_hold_it(gpt, case):
    watched = Watched(gpt)
    with batches_on(case, watched, prefetch=0, device_prefetch=0) as batches:
        list(islice(batches, 3))
    assert watched.reads == list(range(3 * SIZE))


@pytest.mark.parametrize("case", ["data x model", "sequence", "balanced"])
def test_fields_are_sharded_as_asked(gpt, case):
    axes, _, sequence_axis, _ = GRID[case]
    split_over = PartitionSpec("data", sequence_axis) if sequence_axis else PartitionSpec("data")
    with batches_on(case, gpt) as batches:
        batch = next(batches)
    width = 16 // axes.get("sequence", 1)
    for name, array in batch.items():
        assert array.sharding == batches.sharding, name
        assert array.sharding.spec == split_over
        shapes = {shard.data.shape for shard in array.addressable_shards}
        assert shapes == {(SIZE // axes["data"], width)}
    assert {array.dtype.name for array in batch.values()} == {"int32", "float32"}
