"""Run by `test_processes.py` in each of two processes: PROCESS PORT DIRECTORY."""

import json
import sys
from itertools import islice
from pathlib import Path

from jaxtyping import install_import_hook

install_import_hook(["coredata", "coredata_jax"], "beartype.beartype")

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from coredata_jax import (  # noqa: E402
    JaxRanks,
    PackedBatches,
    PlanMismatchError,
    ShardedBatches,
    check_same_plan,
)
from jax.sharding import Mesh  # noqa: E402
from meshes import Watched, numpy_batches, numpy_loader  # noqa: E402
from ragged import by_hand, ragged  # noqa: E402

from coredata.datasets import (  # noqa: E402
    BlendedMegatronDatasetBuilder,
    GPTDataset,
    GPTDatasetConfig,
)
from coredata.datasets.ranks import RankFailedError, Ranks  # noqa: E402
from coredata.testing import numbered_dataset  # noqa: E402
from coredata.text import NullTokenizer  # noqa: E402
from coredata.varlen import PackWindows  # noqa: E402

SIZE, STEPS = 8, 6

# (axes, data axes, sequence axis, balanced, devices in another order) ->
# rows that each process needs of a batch
GRID = [
    ({"data": 4, "model": 2}, "data", None, False, False, [range(4), range(4, 8)]),
    ({"model": 2, "data": 4}, "data", None, False, False, [range(8), range(8)]),
    ({"data": 8}, "data", None, False, True, [[4, 5, 6, 7], [0, 1, 2, 3]]),
    ({"data": 2, "sequence": 4}, "data", "sequence", True, False, [range(4), range(4, 8)]),
    ({"sequence": 4, "data": 2}, "data", "sequence", True, False, [range(8), range(8)]),
    ({"sequence": 8}, (), "sequence", False, False, [range(8), range(8)]),
]


def batches_on(case, dataset, **options):
    axes, data_axes, sequence_axis, balanced, turned, _ = case
    devices = jax.devices()[::-1] if turned else jax.devices()
    mesh = Mesh(np.array(devices).reshape(tuple(axes.values())), tuple(axes))
    return ShardedBatches(
        dataset, SIZE, mesh, data_axes, sequence_axis, load_balanced=balanced, **options
    )


def assert_shards(batches: ShardedBatches, expected: list) -> None:
    """What this process holds of each batch is what the whole one has there."""
    for batch, wanted in zip(islice(batches, len(expected)), expected, strict=True):
        for name, array in batch.items():
            assert array.shape == wanted[name].shape
            columns = batches.sequence_order(array.shape[1]).positions
            ordered = wanted[name][:, columns]
            assert len(array.addressable_shards) == 4
            for shard in array.addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data), ordered[shard.index])


def check_grid(gpt: GPTDataset, process: int) -> None:
    expected = numpy_batches(gpt, SIZE, STEPS)
    with numpy_loader(gpt, SIZE) as loader:
        list(islice(loader, 2))
        state = loader.state_dict()
    for case in GRID:
        watched = Watched(gpt)
        with batches_on(case, watched, prefetch=0, device_prefetch=0) as batches:
            assert_shards(batches, expected[:2])
            assert batches.state_dict() == state, case
        rows = list(case[-1][process])
        assert watched.reads == [row + step * SIZE for step in range(2) for row in rows], case
        with batches_on(case, gpt) as batches:
            batches.load_state_dict(state)
            assert_shards(batches, expected[2:])


def check_agreement(ranks: JaxRanks, process: int) -> None:
    with batches_on(GRID[0], numbered_dataset(40, 4)) as batches:
        check_same_plan(batches, ranks)
    differing = 'name: process 1 has "copy 1", 0 has "copy 0"'
    own = numbered_dataset(40, 4, f"copy {process}")
    with batches_on(GRID[0], own) as batches, pytest.raises(PlanMismatchError, match=differing):
        check_same_plan(batches, ranks)
    broken = Broken(ragged(3)) if process == 1 else ragged(3)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    failure: tuple = (OSError, "the disk is on fire")
    if process == 0:
        failure = (RankFailedError, "process 1 of 2 could not make its plan: OSError: the disk is")
    with (
        PackedBatches(broken, SIZE, 16, mesh, max_segments=4) as batches,
        pytest.raises(failure[0], match=failure[1]),
    ):
        check_same_plan(batches, ranks)


class Broken:
    """Samples that cannot be read; to plan them without lengths they must be."""

    def __init__(self, source):
        self.source = source

    def __len__(self):
        return len(self.source)

    def fingerprint(self):
        return self.source.fingerprint()

    def __getitem__(self, index):
        raise OSError("the disk is on fire")

    __getitems__ = get_batch = __getitem__


def check_packed(ranks: JaxRanks, process: int) -> None:
    """Each process reads the samples of its own rows alone, and holds what is laid out by hand."""
    lengths = np.array(ragged(3).padded)
    plans = [plan for plan, _ in PackWindows(lengths, 16, 10, max_segments=4).batches(SIZE)]
    for case in (GRID[0], GRID[3]):
        axes, data_axes, sequence_axis, balanced, _, rows = case
        mesh = Mesh(np.array(jax.devices()).reshape(tuple(axes.values())), tuple(axes))
        watched = ragged(3)
        options = {"max_segments": 4, "lengths": lengths, "window": 10, "drop_last": False}
        options |= {"load_balanced": balanced, "prefetch": 0, "device_prefetch": 0}
        with PackedBatches(watched, SIZE, 16, mesh, data_axes, sequence_axis, **options) as batches:
            check_same_plan(batches, ranks)
            columns = batches.sequence_order(16).positions
            for plan, batch in zip(plans, batches, strict=True):
                wanted = by_hand(ragged(3), plan, 4)
                for name, array in batch.items():
                    whole = wanted[name] if name.startswith("cu") else wanted[name][:, columns]
                    for shard in array.addressable_shards:
                        np.testing.assert_array_equal(np.asarray(shard.data), whole[shard.index])
        mine = [plan.take(np.array(rows[process])).segments.samples for plan in plans]
        assert watched.reads == [n for samples in mine for n in sorted(samples.tolist())]


def check_mesh_of_others(process: int) -> None:
    theirs = [device for device in jax.devices() if device.process_index != process]
    with pytest.raises(ValueError, match=f"none of its 4 devices belongs to process {process}"):
        ShardedBatches(numbered_dataset(40, 4), 4, Mesh(np.array(theirs), ("data",)))


def main() -> None:
    process, port, directory = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=process)
    ranks = JaxRanks.from_distributed()
    assert isinstance(ranks, Ranks)
    assert (ranks.rank, ranks.world_size, ranks.node_rank) == (process, 2, process)
    assert JaxRanks.from_distributed(processes_per_node=2).node_rank == 0
    messages = ["", "ünïcode" * 50]
    assert ranks.all_gather(messages[process]) == messages
    config = GPTDatasetConfig(
        random_seed=11,
        sequence_length=16,
        blend=([str(directory / "corpus")], None),
        split="1,0,0",
        tokenizer=NullTokenizer(300),
        path_to_cache=str(directory / "cache"),
        segment_ids=True,
    )
    gpt, _, _ = BlendedMegatronDatasetBuilder(
        GPTDataset, [80, 0, 0], config=config, ranks=ranks
    ).build()
    check_grid(gpt, process)
    check_agreement(ranks, process)
    check_packed(ranks, process)
    check_mesh_of_others(process)
    (directory / f"done-{process}.json").write_text(json.dumps("done"))


main()
