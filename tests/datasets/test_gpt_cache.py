"""GPT datasets and their index cache."""

import json
import os
import shutil
import subprocess
import sys
import warnings
from importlib.resources import files

import numpy as np
import pytest

from coredata.datasets import (
    ArraySource,
    GPTDataset,
    GPTDatasetConfig,
    IndexCacheError,
    IndexCacheWarning,
    MockGPTDataset,
)
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split
from coredata.text import ByteTokenizer

GOLDEN = files("coredata.testing") / "golden" / "gpt"
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


def test_names_and_descriptions_are_the_references(tmp_path):
    golden = json.loads((GOLDEN / "cache_identity.json").read_text())
    splits = [(Split.train, 20), (Split.valid, 4), (Split.test, None)]
    built = [
        dataset(tmp_path, path=golden["path"], num_samples=samples, index_split=split)
        for split, samples in splits
    ]
    assert [one.unique_description for one in built] == golden["descriptions"]
    assert [one.unique_description_hash for one in built] == golden["hashes"]
    names = {name for name in os.listdir(tmp_path) if not name.endswith("checksums.json")}
    assert names == set(golden["files"])
    for one, description in zip(built, golden["descriptions"], strict=True):
        name = f"{one.unique_description_hash}-GPTDataset-{one.index_split.name}-description.txt"
        assert (tmp_path / name).read_text() == description


@pytest.mark.parametrize(
    ("split", "options", "added"),
    [
        (Split.train, {}, {}),
        (Split.train, {"drop_last_partial_validation_sequence": False}, {}),
        (Split.valid, {"drop_last_partial_validation_sequence": True}, {}),
        (
            Split.valid,
            {"drop_last_partial_validation_sequence": False},
            {"drop_last_partial_validation_sequence": False},
        ),
        (
            Split.test,
            {"add_extra_token_to_sequence": False},
            {"add_extra_token_to_sequence": False},
        ),
        (
            Split.train,
            {"separate_final_epoch_threshold": 0.5},
            {"separate_final_epoch_threshold": 0.5},
        ),
        (Split.train, {"eod_mask_loss": True, "output_dtype": "int32"}, {}),
    ],
)
def test_keys_hold_options_that_change_the_order_and_are_not_defaults(split, options, added):
    plain = dataset(index_split=split).unique_identifiers
    found = dataset(index_split=split, **options).unique_identifiers
    assert dict(found) == {**plain, **added}
    assert list(found) == [*plain, *added]


def test_identity_of_the_tokenizer_can_be_given():
    tokenizer = ByteTokenizer(unique_identifiers={"class": "Theirs", "path": "x"})
    one = dataset(tokenizer=tokenizer)
    assert json.loads(one.unique_description)["tokenizer"] == {"class": "Theirs", "path": "x"}


def test_tokenizer_without_identity():
    class Bare:
        eod, pad, vocab_size = 1, 2, 3

    with pytest.raises(TypeError, match="Give the tokenizer unique_identifiers"):
        dataset(tokenizer=Bare())


def test_second_dataset_reads_what_the_first_wrote(tmp_path, monkeypatch):
    first = dataset(tmp_path)
    monkeypatch.setattr("coredata.datasets.gpt_index_plan.build_gpt_indices", None)
    second = quietly(lambda: dataset(tmp_path))
    assert_same(first, second)
    assert_same(first, quietly(lambda: dataset(tmp_path, fast_cache_load=True)))


def test_nothing_is_written_without_a_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dataset()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("damaged", [False, True])
def test_cache_beside_the_data_is_read_and_never_written(tmp_path, monkeypatch, damaged):
    prefix = str(tmp_path / "corpus")
    directory = tmp_path / "corpus" / "cache" / "GPTDataset_indices"
    written = dataset(directory, path=prefix)
    if not damaged:
        monkeypatch.setattr("coredata.datasets.gpt_index_plan.build_gpt_indices", None)
        assert_same(written, quietly(lambda: dataset(path=prefix)))
        return
    victim = next(directory.glob("*document_index.npy"))
    victim.write_bytes(victim.read_bytes()[:-8])
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with pytest.warns(IndexCacheWarning, match=f"{directory} is damaged"):
        assert_same(dataset(path=prefix), dataset())
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


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


def write_corpus(prefix):
    tokens = source()
    os.makedirs(os.path.dirname(prefix))
    with IndexedDatasetBuilder(prefix, np.uint16) as builder:
        builder.add_documents(tokens.tokens, tokens.sequence_lengths)
        builder.finalize()


def read_corpus(prefix, cache):
    given = config(cache, blend=([prefix], None))
    low = GPTDataset.build_low_level_dataset(prefix, given)
    documents = np.arange(GPTDataset.numel_low_level_dataset(low), dtype=np.int32)
    return GPTDataset(low, prefix, documents, 50, Split.train, given)


@pytest.mark.parametrize("relative", [True, False])
def test_data_and_cache_moved_together(tmp_path, monkeypatch, relative):
    """With relative paths the cache is hit; with absolute ones it is built anew beside the old."""
    old, new = tmp_path / "old", tmp_path / "new"
    write_corpus(str(old / "data" / "corpus"))
    monkeypatch.chdir(old)
    root = "" if relative else f"{old}/"
    before = read_corpus(f"{root}data/corpus", f"{root}cache")
    batch = before.get_batch(np.arange(20))
    del before
    shutil.move(old, new)
    monkeypatch.chdir(new)
    root = "" if relative else f"{new}/"
    after = quietly(lambda: read_corpus(f"{root}data/corpus", f"{root}cache"))
    assert len(list((new / "cache").glob("*description.txt"))) == (1 if relative else 2)
    for name, values in after.get_batch(np.arange(20)).items():
        np.testing.assert_array_equal(values, batch[name])


BUILD = """
import os, sys, traceback
import numpy as np
from coredata.datasets import ArraySource, GPTDataset, GPTDatasetConfig
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
    print(hash(batch["tokens"].tobytes()), flush=True)

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


def test_deferred_indices_are_opened_by_the_first_read(tmp_path, monkeypatch):
    built = dataset(tmp_path)
    opened = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *a, **k: opened.append(path) or real(path, *a, **k)
    )
    for fast in (False, True):
        opened.clear()
        deferred = dataset(tmp_path, defer_npy_index_mmap=True, fast_cache_load=fast)
        assert len(deferred) == len(built)
        assert opened == []
        np.testing.assert_array_equal(deferred[7]["tokens"], built[7]["tokens"])
        assert len([path for path in opened if str(path).endswith("_index.npy")]) == 3
        assert len(deferred) == len(built)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_samples": None},
        {"index_split": Split.valid, "drop_last_partial_validation_sequence": False},
        {"add_extra_token_to_sequence": False},
    ],
)
def test_deferred_length_is_the_length(tmp_path, options):
    deferred = dataset(tmp_path, defer_npy_index_mmap=True, **options)
    assert len(deferred) == len(dataset(None, **options))


def test_deferred_indices_are_built_if_they_are_not_there(tmp_path):
    deferred = dataset(tmp_path, defer_npy_index_mmap=True)
    assert_same(deferred, dataset())
    assert list(tmp_path.glob("*description.txt"))


def test_fast_loading_needs_a_cache(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"finished cache in {tmp_path}; build the dataset"):
        dataset(tmp_path, fast_cache_load=True)


def test_mock_data_have_no_cache_beside_them_but_may_be_cached(tmp_path):
    given = GPTDatasetConfig(
        random_seed=1, sequence_length=64, tokenizer=ByteTokenizer(), path_to_cache=str(tmp_path)
    )
    low = MockGPTDataset.build_low_level_dataset(None, given)
    documents = np.arange(100, dtype=np.int32)
    made = MockGPTDataset(low, None, documents, 10, Split.train, given)
    assert len(list(tmp_path.glob("*-MockGPTDataset-train-*"))) == 5
    assert_same(made, MockGPTDataset(low, None, documents, 10, Split.train, given))
