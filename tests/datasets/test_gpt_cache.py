"""GPT datasets and their index cache."""

import json
import os
import warnings
from importlib.resources import files

import numpy as np
import pytest

from coredata.datasets import (
    ArraySource,
    GPTDataset,
    GPTDatasetConfig,
    IndexCacheWarning,
    MockGPTDataset,
)
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
    names = {
        name
        for name in os.listdir(tmp_path)
        if not name.endswith(("checksums.json", "arrays.pack"))
    }
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
        # Checked, small arrays come from the copy beside their checksums.
        ends = ["_index.npy"] * 3 if fast else ["arrays.pack"]
        assert len([path for path in map(str, opened) if path.endswith(ends[0])]) == len(ends)
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
