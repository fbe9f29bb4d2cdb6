"""Real processes build one blend: cold caches, a rank that raises, a rank that is killed."""

import multiprocessing
import os
import time
from dataclasses import dataclass

import pytest

from coredata.datasets import (
    BlendedMegatronDatasetBuilder,
    GPTDataset,
    GPTDatasetConfig,
    connect_ranks,
)
from coredata.testing import random_corpus, write_corpus
from coredata.text import ByteTokenizer

SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Scene:
    """One build by all ranks."""

    cache: str
    scope: str = "shared"
    builds: tuple = (True, True, True, True)
    raises: int | None = None
    dies: int | None = None


class Fated(GPTDataset):
    """Raises, or ends its process, where the environment says so."""

    def __init__(self, source, path, indices, num_samples, index_split, config):
        if os.environ["FATE"] == "raise":
            raise ValueError("this rank has no luck")
        if os.environ["FATE"] == "die":
            os._exit(9)
        super().__init__(source, path, indices, num_samples, index_split, config)


def play(ranks, scene, prefixes):
    """What a rank gets in a scene, or what it raises."""
    os.environ["FATE"] = {scene.raises: "raise", scene.dies: "die"}.get(ranks.rank, "")
    folder = os.path.join(scene.cache, f"node{ranks.node_rank}" if scene.scope == "node" else "")
    config = GPTDatasetConfig(
        random_seed=3,
        sequence_length=16,
        tokenizer=ByteTokenizer(),
        blend=(prefixes, [0.7, 0.3]),
        split="90,10,0",
        path_to_cache=folder,
    )
    builder = BlendedMegatronDatasetBuilder(
        Fated,
        [60, 6, 0],
        lambda: scene.builds[ranks.rank],
        config,
        ranks=ranks,
        cache_scope=scene.scope,
    )
    try:
        train, valid, _ = builder.build()
    except (ValueError, RuntimeError, ConnectionError) as error:
        return type(error).__name__, str(error)
    if train is None:
        return "none", valid
    return "built", int(train.get_batch(range(len(train)))["tokens"].sum())


def one_rank(ranks, results, scenes, prefixes):
    for scene in scenes:
        results.put((ranks.rank, play(ranks, scene, prefixes)))


def run(tmp_path, scenes):
    """Four processes on two nodes play the scenes; what each told, and how they ended."""
    prefixes = [
        write_corpus(tmp_path / name, random_corpus(i, longest=30)) for i, name in enumerate("ab")
    ]
    members = connect_ranks(4, node_ranks=[0, 0, 1, 1], timeout=100)
    results = SPAWN.SimpleQueue()
    processes = [
        SPAWN.Process(target=one_rank, args=(member, results, scenes, prefixes))
        for member in members
    ]
    for process in processes:
        process.start()
    for member in members:
        member.close()
    for process in processes:
        process.join(timeout=100)
    told = {rank: [] for rank in range(4)}
    while not results.empty():
        rank, outcome = results.get()
        told[rank].append(outcome)
    return told, [process.exitcode for process in processes]


def arrays_in(folder):
    return sorted(p.name.split("-", 1)[1] for p in folder.iterdir() if p.suffix == ".npy")


ARRAYS = sorted(
    f"{kind}-{split}-{name}.npy"
    for split in ("train", "valid")
    for kind, names in (
        ("Fated", ["document_index", "sample_index", "shuffle_index"] * 2),
        ("BlendedDataset", ["dataset_index", "dataset_sample_index"]),
    )
    for name in names
)


@pytest.mark.slow
def test_caches_failures_and_a_death(tmp_path):
    shared, local, unlucky, deadly = (str(tmp_path / name) for name in "abcd")
    scenes = [
        Scene(shared),
        Scene(local, "node", builds=(True, True, False, True)),
        Scene(unlucky, raises=3),
        Scene(deadly, dies=2),
    ]
    told, codes = run(tmp_path, scenes)
    assert codes == [0, 0, 9, 0]
    built = told[0][0]
    assert built[0] == "built"

    assert [told[rank][0] for rank in range(4)] == [built] * 4
    assert arrays_in(tmp_path / "a") == ARRAYS

    assert [told[rank][1] for rank in range(4)] == [built, built, ("none", None), built]
    assert arrays_in(tmp_path / "b" / "node0") == ARRAYS
    assert arrays_in(tmp_path / "b" / "node1") == ARRAYS

    assert told[3][2] == ("ValueError", "this rank has no luck")
    heard = "rank 3 of 4 failed while building datasets: ValueError: this rank has no luck"
    assert [told[rank][2] for rank in range(3)] == [("RankFailedError", heard)] * 3

    lost = "rank 2 has ended before all ranks were done; see its own output for the reason"
    assert [told[rank][3:] for rank in range(4)] == [
        [] if rank == 2 else [("RankLostError", lost)] for rank in range(4)
    ]


@pytest.mark.slow
def test_the_first_rank_dies(tmp_path):
    start = time.monotonic()
    told, codes = run(tmp_path, [Scene(str(tmp_path / "cache"), dies=0)])
    assert time.monotonic() - start < 80  # it is the end that is noticed, not the timeout
    assert codes == [9, 0, 0, 0]
    lost = "rank 0 has ended before all ranks were done; see its own output for the reason"
    assert told == {0: [], **{rank: [("RankLostError", lost)] for rank in (1, 2, 3)}}
