"""GPT datasets in other processes."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from coredata.datasets import GPTDatasetConfig, MockGPTDataset
from coredata.indices import Split
from coredata.text import ByteTokenizer


def assert_same_batches(left, right):
    for name, values in left.get_batch(np.arange(len(left))).items():
        np.testing.assert_array_equal(right.get_batch(np.arange(len(left)))[name], values)


@pytest.mark.parametrize("cached", [True, False])
def test_pickle(prefix, from_file, tmp_path, cached):
    one = from_file(prefix, cache=str(tmp_path / "cache") if cached else None)
    data = pickle.dumps(one)
    assert_same_batches(one, pickle.loads(data))
    assert pickle.loads(data).fingerprint() == one.fingerprint()
    assert pickle.loads(data).indices.dtype == one.indices.dtype


def test_pickle_is_small_with_a_cache(prefix, from_file, tmp_path):
    """Neither indices nor documents nor tokens travel."""
    cache = str(tmp_path / "cache")
    one = from_file(prefix, num_samples=20_000, cache=cache)
    assert one.sample_index.nbytes > 100_000
    assert len(pickle.dumps(one)) < 4_000


def test_pickle_survives_the_loss_of_its_cache(prefix, from_file, tmp_path):
    cache = tmp_path / "cache"
    one = from_file(prefix, cache=str(cache))
    other = pickle.loads(pickle.dumps(one))
    for path in cache.iterdir():
        path.unlink()
    assert_same_batches(one, other)
    assert list(cache.iterdir())


def test_pickle_of_documents_that_are_no_range(prefix, from_file):
    one = from_file(prefix, np.array([3, 5, 4, 6], np.int32))
    other = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(other.indices, [3, 5, 4, 6])
    assert_same_batches(one, other)


def test_pickle_of_mock_data(tmp_path):
    """Neither the lengths nor the numbers of 100,000 documents travel."""
    given = GPTDatasetConfig(
        random_seed=1, sequence_length=4096, tokenizer=ByteTokenizer(), path_to_cache=str(tmp_path)
    )
    low = MockGPTDataset.build_low_level_dataset(None, given)
    documents = np.arange(100_000, dtype=np.int32)
    one = MockGPTDataset(low, None, documents, 10, Split.train, given)
    data = pickle.dumps(one)
    assert len(data) < 4_000
    np.testing.assert_array_equal(one[3]["tokens"], pickle.loads(data)[3]["tokens"])


WORKERS = """
import multiprocessing, sys
import numpy as np
from coredata.datasets import GPTDataset, GPTDatasetConfig
from coredata.indices import Split
from coredata.text import ByteTokenizer

def read(dataset):
    return dataset.get_batch(np.arange(len(dataset)))["tokens"].tolist()

def main(prefix, cache, method):
    config = GPTDatasetConfig(
        random_seed=1, sequence_length=8, blend=([prefix], None), split="1",
        tokenizer=ByteTokenizer(), path_to_cache=cache or None,
    )
    low = GPTDataset.build_low_level_dataset(prefix, config)
    dataset = GPTDataset(low, prefix, np.arange(50, dtype=np.int32), 30, Split.train, config)
    expected = read(dataset)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(read, [dataset] * 4) == [expected] * 4
        pool.close()
        pool.join()
    print("same")

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("cached", [True, False])
def test_workers(prefix, tmp_path, method, cached):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    result = subprocess.run(
        [sys.executable, str(script), prefix, str(tmp_path / "cache") if cached else "", method],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.stdout == "same\n", result.stderr
