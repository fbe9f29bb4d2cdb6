"""Readers in other processes: pickled to a path, inherited by a fork, used by threads."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from coredata.formats import IndexedDataset, IndexedDatasetBuilder

ASKED = {
    "sequences": np.array([4, 0, 3]),
    "offsets": np.array([1, 0, 1]),
    "lengths": np.array([2, 3, 1]),
    "out_offsets": np.array([0, 2, 5]),
}
ANSWER = [8, 9, 1, 2, 3, 6]
READ = (
    "dataset.read_into(sequences, offsets, lengths, out, out_offsets) or (out.tolist(), "
    "dataset[4].tolist(), [part.tolist() for part in dataset[2:4]], len(dataset))"
)
EXPECTED = (ANSWER, [7, 8, 9, 10], [[4], [5, 6]], 5)
FORKING = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def names_for(dataset):
    return {**ASKED, "dataset": dataset, "out": np.zeros(6, np.int64)}


@pytest.fixture(params=["mapped", "positional"])
def mmap(request):
    return request.param == "mapped"


@pytest.mark.parametrize("used", [True, False])
def test_a_pickle_is_a_path_and_options(prefix, mmap, used):
    dataset = IndexedDataset(prefix, mmap=mmap)
    if used:
        assert dataset[0].tolist() == [1, 2, 3]
    data = pickle.dumps(dataset)
    assert len(data) < 400 + len(prefix)
    again = pickle.loads(data)
    assert again.path_prefix == prefix
    assert eval(READ, names_for(again)) == EXPECTED


def test_all_options_survive(write, documents):
    prefix = write(documents, modes=[1, 2, 3, 4, 5])
    dataset = IndexedDataset(
        prefix,
        multimodal=True,
        mmap=False,
        sequences_per_dataset=[5, 5],
        dtype_code=8,
        fast_cache_load=True,
    )
    again = pickle.loads(pickle.dumps(dataset))
    assert again.multimodal
    assert again.bin_reader.view() is None
    assert again.sequence_modes.tolist() == [1, 2, 3, 4, 5]


def test_unpickling_opens_nothing(prefix, tmp_path):
    data = pickle.dumps(IndexedDataset(prefix))
    (tmp_path / "corpus.bin").rename(tmp_path / "away")
    again = pickle.loads(data)
    (tmp_path / "away").rename(tmp_path / "corpus.bin")
    assert len(again) == 5


@FORKING
@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_other_processes_read_the_same(prefix, method):
    context = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        for mmap in (True, False):
            dataset = IndexedDataset(prefix, mmap=mmap)
            assert eval(READ, names_for(dataset)) == EXPECTED
            assert pool.apply(eval, (READ, names_for(dataset))) == EXPECTED
            assert eval(READ, names_for(dataset)) == EXPECTED
        pool.close()
        pool.join()


@FORKING
def test_a_fork_inherits_an_open_reader(prefix, mmap):
    dataset = IndexedDataset(prefix, mmap=mmap)
    assert eval(READ, names_for(dataset)) == EXPECTED
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            same = all(eval(READ, names_for(dataset)) == EXPECTED for _ in range(20))
            os._exit(0 if same else 1)
        children.append(child)
    for _ in range(20):
        assert eval(READ, names_for(dataset)) == EXPECTED
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]


def test_threads_share_a_reader(tmp_path, mmap):
    with IndexedDatasetBuilder(tmp_path / "x", np.uint16) as builder:
        lengths = np.arange(200)
        builder.add_documents(np.arange(lengths.sum()), lengths)
        builder.finalize()
    dataset = pickle.loads(pickle.dumps(IndexedDataset(tmp_path / "x", mmap=mmap)))
    starts = np.cumsum(lengths) - lengths

    def read(sequence):
        out = np.zeros(lengths[sequence], np.int64)
        zero = np.array([0])
        dataset.read_into(np.array([sequence]), zero, np.array([out.size], np.int64), out, zero)
        return out

    with ThreadPoolExecutor(8) as pool:
        for sequence, out in enumerate(pool.map(read, range(200))):
            first = starts[sequence]
            np.testing.assert_array_equal(out, np.arange(first, first + lengths[sequence]))


SHORTER = """
import os, resource, sys
from coredata.formats import IndexedDataset
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
dataset = IndexedDataset(sys.argv[1], mmap=sys.argv[2] == "map")
assert dataset[0].sum() > 0
os.truncate(sys.argv[1] + ".bin", 100)
dataset[len(dataset) - 1].sum()
"""


def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path):
    prefix = str(tmp_path / "corpus")
    ended = {}
    for way in ("map", "position"):
        with IndexedDatasetBuilder(prefix, np.int32) as builder:
            builder.add_documents(np.ones(40_000, np.int32), np.full(40, 1000))
            builder.finalize()
        command = [sys.executable, "-c", SHORTER, prefix, way]
        ended[way] = subprocess.run(command, capture_output=True, text=True)
    assert ended["map"].returncode == -signal.SIGBUS
    assert ended["position"].returncode == 1
    assert f"{prefix}.bin" in ended["position"].stderr.splitlines()[-1]
