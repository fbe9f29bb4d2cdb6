"""Ranges in other processes: forked while reading, spawned, and from a fork server."""

import multiprocessing
import os
import pickle
import uuid

import fsspec
import numpy as np
import pytest

from coredata.datasets import GPTDataset, GPTDatasetConfig
from coredata.formats import IndexedDataset, IndexedDatasetBuilder
from coredata.indices import Split
from coredata.loading import BatchLoader
from coredata.sampling import GlobalBatchSampler
from coredata.storage import RangedObject
from coredata.testing.fault_proxy import delay
from coredata.text import ByteTokenizer

CONTENT = np.random.default_rng(9).integers(0, 256, 200_000, np.uint8).tobytes()
FORKING = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
WHERE = ([100, 150_000, 7000], [50, 3000, 1000])


@pytest.fixture(autouse=True)
def _connections_of_others_end():
    """A fork spoils the idle connections that fsspec keeps for itself; tests that follow wait."""
    yield
    fsspec.filesystem("s3").clear_instance_cache()


def right(reader):
    """Whether a reader gives the bytes, as a module-level function that a pool can call."""
    out = np.zeros(sum(WHERE[1]), np.uint8)
    offsets, lengths = (np.array(part, np.int64) for part in WHERE)
    reader.prefetch(offsets + 20_000, lengths)
    reader.read_ranges(offsets, lengths, out, np.cumsum(lengths) - lengths)
    return out.tobytes() == b"".join(CONTENT[a : a + n] for a, n in zip(*WHERE, strict=True))


@pytest.fixture
def reader(bucket):
    own = {"disk_bytes": uuid.uuid4().int, "deadline": 30.0}
    return RangedObject(bucket.put("x.bin", CONTENT), {**bucket.options, "coredata": own})


@FORKING
@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_after_the_parent_has_read(reader, method):
    assert right(reader)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map(_check, [pickle.dumps(reader)] * 4) == [True] * 4
        pool.close()
        pool.join()
    assert right(reader)


def _check(data):
    content = np.random.default_rng(9).integers(0, 256, 200_000, np.uint8).tobytes()
    reader = pickle.loads(data)
    out = [bytes(reader.read(a, n)) for a, n in zip(*WHERE, strict=True)]
    return out == [content[a : a + n] for a, n in zip(*WHERE, strict=True)]


@FORKING
def test_forked_while_threads_of_the_parent_fetch(reader, proxy):
    assert right(reader)
    proxy.set(delay(0.3))
    reader.prefetch(np.arange(10) * 15_000, np.full(10, 4000))
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os._exit(0 if right(reader) and reader.counters.requests else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert right(reader)


@FORKING
def test_a_forked_child_holds_nothing_of_what_its_parent_held(reader):
    reader.read(0, 100_000)
    assert reader.counters.held > 100_000
    child = os.fork()
    if child == 0:
        os._exit(0 if reader.counters.held == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0


def corpus(url, options, documents=60):
    rng = np.random.default_rng(2)
    with IndexedDatasetBuilder(url, np.uint16, storage_options=options) as builder:
        lengths = rng.integers(10, 900, documents)
        builder.add_documents(rng.integers(1, 250, lengths.sum()), lengths)
        builder.finalize()


def dataset_of(prefix, options):
    config = GPTDatasetConfig(
        random_seed=3,
        sequence_length=128,
        blend=([prefix], None),
        split="1",
        tokenizer=ByteTokenizer(),
        storage_options=options,
    )
    source = GPTDataset.build_low_level_dataset(prefix, config)
    return GPTDataset(source, prefix, np.arange(len(source)), None, Split.train, config)


def batches(dataset, **options):
    with BatchLoader(dataset, GlobalBatchSampler(len(dataset), 0, 4), **options) as loader:
        return [batch["tokens"] for batch in loader]


@pytest.fixture
def remote(bucket, tmp_path):
    own = {
        "disk_bytes": uuid.uuid4().int,
        "copies": str(tmp_path / "copies"),
        "memory": 1 << 20,
    }
    options = {**bucket.options, "coredata": own}
    corpus(f"{bucket.url}/corpus", bucket.direct)
    corpus(str(tmp_path / "corpus"), None)
    return dataset_of(f"{bucket.url}/corpus", options), dataset_of(str(tmp_path / "corpus"), None)


@pytest.mark.parametrize("threads", [1, 4])
def test_batches_are_those_of_a_local_file_whatever_comes_first(remote, proxy, threads):
    ours, local = remote
    proxy.set(delay(0.05, r"bytes=\d*[02468]-"), delay(0.01))
    found = batches(ours, threads=threads, prefetch=4, look_ahead=6)
    for a, b in zip(found, batches(local), strict=True):
        np.testing.assert_array_equal(a, b)


def test_batches_told_of_are_fetched_before_they_are_read(remote):
    ours, _ = remote
    ours.dataset.bin_reader._service()
    found = batches(ours, threads=1, prefetch=1, look_ahead=8)
    counters = ours.dataset.bin_reader.counters
    assert len(found) > 10
    assert counters.bytes_fetched <= counters.bytes_used * 1.3
    assert counters.hits > counters.waits


@FORKING
@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_whole_dataset_in_workers(remote, method):
    ours, local = remote
    expected = [batch.sum() for batch in batches(local)]
    assert [batch.sum() for batch in batches(ours)] == expected
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_sums, [ours] * 2) == [expected] * 2
        pool.close()
        pool.join()


def _sums(dataset):
    return [batch.sum() for batch in batches(dataset)]


def test_memory_file_systems_too():
    corpus("memory://processes/corpus", None)
    ours = dataset_of("memory://processes/corpus", None)
    assert isinstance(ours.dataset.bin_reader, RangedObject)
    assert sum(map(np.sum, batches(ours))) == sum(map(np.sum, batches(ours, look_ahead=0)))
    assert isinstance(ours.dataset, IndexedDataset)
    fsspec.filesystem("memory").rm("/processes", recursive=True)
