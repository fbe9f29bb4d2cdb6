"""Damaged and foreign index caches of GPT datasets, and caches that several processes build."""

import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

from coredata.datasets import (
    ArraySource,
    GPTDataset,
    GPTDatasetConfig,
    IndexCacheError,
    IndexCacheWarning,
)
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split
from coredata.text import ByteTokenizer

INDICES = ("document_index", "sample_index", "shuffle_index")


def config(cache=None, **options):
    return GPTDatasetConfig(
        **{
            "random_seed": 1234,
            "sequence_length": 16,
            "blend": (["data/corpus_text_document"], None),
            "split": "90,5,5",
            "tokenizer": ByteTokenizer(),
            "path_to_cache": None if cache is None else str(cache),
            **options,
        }
    )


def source(documents=60, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 20, documents).astype(np.int32)
    return ArraySource(rng.integers(0, 256, int(lengths.sum())), lengths)


def dataset(cache=None, tokens=None, path="data/corpus_text_document", num_samples=50, **options):
    tokens = source() if tokens is None else tokens
    split = options.pop("index_split", Split.train)
    documents = np.arange(len(tokens), dtype=np.int32)
    return GPTDataset(tokens, path, documents, num_samples, split, config(cache, **options))


def quietly(build):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return build()


def assert_same(left, right):
    for name in INDICES:
        a, b = getattr(left, name), getattr(right, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("checksums", [True, False], ids=["ours", "the reference's"])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("damage", ["zeros", "ones", "cut", "missing", "swapped"])
def test_damage_is_repaired(tmp_path, index, damage, checksums):
    """Also in a cache without checksums, as the reference writes it."""
    expected = dataset()
    dataset(tmp_path)
    victim = next(tmp_path.glob(f"*{index}.npy"))
    array = np.load(victim)
    middle = len(array) // 2
    if damage == "missing":
        victim.unlink()
    elif damage == "cut":
        victim.write_bytes(victim.read_bytes()[: -4 * array.itemsize])
    elif damage == "swapped":
        array[[middle, 0]] = array[[0, middle]]
        if index != "sample_index":
            array[middle] = array[0]
        np.save(victim, array)
    else:
        array[middle : middle + 5] = 0 if damage == "zeros" else 1
        np.save(victim, array)
    if not checksums:
        next(tmp_path.glob("*checksums.json")).unlink()
    with pytest.warns(IndexCacheWarning, match=f"{tmp_path} is damaged and is built again"):
        assert_same(dataset(tmp_path), expected)
    assert_same(quietly(lambda: dataset(tmp_path)), expected)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_samples": 3},
        {"num_samples": None},
        {"index_split": Split.valid, "drop_last_partial_validation_sequence": False},
        {"add_extra_token_to_sequence": False},
        {"tokens": ArraySource(np.arange(30), np.array([0, 30, 0], np.int32))},
        {
            "tokens": ArraySource(np.arange(40), np.array([40, 0, 0], np.int32)),
            "index_split": Split.valid,
            "drop_last_partial_validation_sequence": False,
            "num_samples": 5,
        },
        {"tokens": ArraySource(np.arange(0), np.array([0, 0], np.int32)), "num_samples": None},
        {"tokens": ArraySource(np.arange(0), np.array([], np.int32)), "num_samples": None},
    ],
)
def test_whole_caches_without_checksums_are_taken(tmp_path, options):
    written = dataset(tmp_path, **options)
    next(tmp_path.glob("*checksums.json")).unlink()
    assert_same(quietly(lambda: dataset(tmp_path, **options)), written)


def test_cache_of_the_reference_made_with_other_options(tmp_path):
    """Its keys do not hold the extra token. Arrays made without it are found out."""
    tokens = ArraySource(np.arange(320), np.full(20, 16, np.int32))
    other = dataset(tmp_path, tokens, add_extra_token_to_sequence=False, num_samples=None)
    wanted = dataset(None, tokens, num_samples=None)
    for path in list(tmp_path.iterdir()):
        name = path.name.replace(other.unique_description_hash, wanted.unique_description_hash)
        path.rename(tmp_path / name)
    next(tmp_path.glob("*checksums.json")).unlink()
    next(tmp_path.glob("*description.txt")).write_text(wanted.unique_description)
    with pytest.warns(IndexCacheWarning, match="was made from other data or settings"):
        assert_same(dataset(tmp_path, tokens, num_samples=None), wanted)


def test_other_data_under_the_same_name(tmp_path):
    """The key holds the path, not what is in the file."""
    dataset(tmp_path)
    with pytest.warns(IndexCacheWarning, match="was made from other data or settings"):
        assert_same(dataset(tmp_path, source(70)), dataset(None, source(70)))


def test_missing_description_means_unfinished(tmp_path):
    expected = dataset(tmp_path)
    next(tmp_path.glob("*description.txt")).unlink()
    assert_same(quietly(lambda: dataset(tmp_path)), expected)
    assert list(tmp_path.glob("*description.txt"))


def test_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexCacheError, match=f"index cache in {tmp_path}/file/cache"):
        dataset(tmp_path / "file" / "cache")


@pytest.mark.parametrize("relative", [True, False])
def test_data_and_cache_moved_together(tmp_path, monkeypatch, from_file, relative):
    """With relative paths the cache is hit; with absolute ones it is built anew beside the old."""
    old, new = tmp_path / "old", tmp_path / "new"
    os.makedirs(old / "data")
    tokens = source()
    with IndexedDatasetBuilder(old / "data" / "corpus", np.uint16) as builder:
        builder.add_documents(tokens.tokens, tokens.sequence_lengths)
        builder.finalize()
    monkeypatch.chdir(old)
    root = "" if relative else f"{old}/"
    before = from_file(f"{root}data/corpus", cache=f"{root}cache")
    batch = before.get_batch(np.arange(20))
    del before
    shutil.move(old, new)
    monkeypatch.chdir(new)
    root = "" if relative else f"{new}/"
    after = quietly(lambda: from_file(f"{root}data/corpus", cache=f"{root}cache"))
    assert len(list((new / "cache").glob("*description.txt"))) == (1 if relative else 2)
    for name, values in after.get_batch(np.arange(20)).items():
        np.testing.assert_array_equal(values, batch[name])


BUILD = """
import os, sys, traceback
import numpy as np
from coredata.datasets import ArraySource, GPTDataset, GPTDatasetConfig
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split
from coredata.text import ByteTokenizer
config = GPTDatasetConfig(
    random_seed=1, sequence_length=16, blend=(["x"], None), split="1", tokenizer=ByteTokenizer(),
    path_to_cache=sys.argv[1],
)
source = ArraySource(np.arange(34000) % 256, np.full(2000, 17, np.int32))

def build():
    for _ in range(3):
        dataset = GPTDataset(source, "x", np.arange(2000), 5000, Split.train, config)
    batch = dataset.get_batch(np.arange(len(dataset)))
    os.write(1, f"{hash(batch['tokens'].tobytes())}\\n".encode())

start, go = os.pipe()
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(start, 1)
        try:
            build()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(child)
os.close(go)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


@pytest.mark.slow
def test_eight_processes_build_one_cache_at_once(tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", BUILD, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == 0, result.stderr
    assert len(set(result.stdout.split())) == 1
    assert len(result.stdout.split()) == 8
    assert len(list(tmp_path.iterdir())) == 5
