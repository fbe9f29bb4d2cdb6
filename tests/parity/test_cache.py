"""Index caches: written by the reference and read by ours, and the other way round."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.datasets import (
    GPTDataset,
    GPTDatasetConfig,
    IndexCacheWarning,
    MockGPTDataset,
)
from coredata.datasets.gpt_identity import gpt_identifiers
from coredata.datasets.identity import describe, description_hash
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from megatron.core.datasets import gpt_dataset as reference
    from megatron.core.datasets.megatron_dataset import MegatronDataset
    from megatron.core.datasets.utils import Split as ReferenceSplit

INDICES = ("document_index", "sample_index", "shuffle_index")


@dataclass
class Tokenizer:
    """What both sides ask of a tokenizer."""

    identity: dict
    pad: int = 2
    eod: int = 1
    eos: int = 1
    vocab_size: int = 300

    @property
    def unique_identifiers(self):
        return self.identity


def options(cache, **changes):
    return {
        "random_seed": 1234,
        "sequence_length": 16,
        "split": "90,5,5",
        "tokenizer": Tokenizer({"class": "Tokenizer", "path": "a/b"}),
        "path_to_cache": None if cache is None else str(cache),
        "reset_position_ids": False,
        "reset_attention_mask": False,
        "eod_mask_loss": False,
        **changes,
    }


def ours(prefix, cache, num_samples=70, split=Split.train, **changes):
    config = GPTDatasetConfig(blend=([prefix], None), **options(cache, **changes))
    source = GPTDataset.build_low_level_dataset(prefix, config)
    return GPTDataset(source, prefix, np.arange(40, dtype=np.int32), num_samples, split, config)


def theirs(prefix, cache, num_samples=70, split=Split.train, **changes):
    config = reference.GPTDatasetConfig(blend=([prefix], None), **options(cache, **changes))
    source = reference.GPTDataset.build_low_level_dataset(prefix, config)
    return reference.GPTDataset(
        source,
        prefix,
        np.arange(40, dtype=np.int32),
        num_samples,
        ReferenceSplit[split.name],
        config,
    )


@pytest.fixture
def prefix(tmp_path):
    name = str(tmp_path / "corpus_text_document")
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 20, 50)
    with IndexedDatasetBuilder(name, np.uint16) as builder:
        builder.add_documents(rng.integers(0, 256, lengths.sum()), lengths)
        builder.finalize()
    return name


@pytest.fixture
def nobody_builds(monkeypatch):
    """From its call on, neither side may build indices."""

    def forbid():
        def build(*args, **kwargs):
            raise RuntimeError("indices are built although they are cached")

        monkeypatch.setattr("coredata.datasets.gpt_index_plan.build_gpt_indices", build)
        monkeypatch.setattr(reference, "_build_document_index", build)

    return forbid


def files(directory):
    return {
        path.name: path.read_bytes()
        for path in Path(directory).iterdir()
        if not path.name.endswith(("checksums.json", "arrays.pack"))
    }


def assert_same(left, right):
    assert len(left) == len(right)
    for k in (0, 5, len(left) - 1):
        np.testing.assert_array_equal(left[k]["tokens"], right[k]["tokens"])
    for name in INDICES:
        assert getattr(left, name).dtype == getattr(right, name).dtype
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


SPLITS = pytest.mark.parametrize("split", list(Split))


@SPLITS
def test_both_write_the_same_files(prefix, tmp_path, split):
    mine = ours(prefix, tmp_path / "ours", split=split)
    reference_one = theirs(prefix, tmp_path / "theirs", split=split)
    assert mine.unique_description == reference_one.unique_description
    assert mine.unique_description_hash == reference_one.unique_description_hash
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")


@SPLITS
@pytest.mark.parametrize("num_samples", [None, 70])
def test_ours_reads_the_references(prefix, tmp_path, nobody_builds, split, num_samples):
    written = theirs(prefix, tmp_path / "cache", num_samples, split)
    nobody_builds()
    for fast in (False, True):
        for deferred in (False, True):
            changes = {"fast_cache_load": fast, "defer_npy_index_mmap": deferred}
            assert_same(ours(prefix, tmp_path / "cache", num_samples, split, **changes), written)


@SPLITS
@pytest.mark.parametrize("num_samples", [None, 70])
def test_the_reference_reads_ours(prefix, tmp_path, nobody_builds, split, num_samples):
    written = ours(prefix, tmp_path / "cache", num_samples, split)
    nobody_builds()
    assert_same(theirs(prefix, tmp_path / "cache", num_samples, split), written)
    deferred = theirs(prefix, tmp_path / "cache", num_samples, split, defer_npy_index_mmap=True)
    assert len(deferred) == len(written)
    np.testing.assert_array_equal(deferred[3]["tokens"], written[3]["tokens"])


def test_ours_reads_what_the_reference_leaves_beside_the_data(prefix, nobody_builds):
    written = theirs(prefix, None)
    assert os.path.isdir(f"{prefix}/cache/GPTDataset_indices")
    nobody_builds()
    assert_same(ours(prefix, None), written)


@pytest.mark.parametrize("index", INDICES)
def test_damage_in_a_cache_of_the_reference_is_found(prefix, tmp_path, index):
    cache = tmp_path / "cache"
    written = theirs(prefix, cache)
    expected = {name: getattr(written, name).copy() for name in INDICES}
    victim = next(cache.glob(f"*{index}.npy"))
    data = bytearray(victim.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    victim.unlink()
    victim.write_bytes(data)
    with pytest.warns(IndexCacheWarning, match="is damaged and is built again"):
        healed = ours(prefix, cache)
    for name in INDICES:
        np.testing.assert_array_equal(getattr(healed, name), expected[name])
    assert_same(theirs(prefix, cache), healed)


def test_mock_caches(tmp_path, nobody_builds):
    built = []
    for config_class, dataset_class, splits in (
        (reference.GPTDatasetConfig, reference.MockGPTDataset, ReferenceSplit),
        (GPTDatasetConfig, MockGPTDataset, Split),
    ):
        config = config_class(**options(tmp_path / "cache"))
        source = dataset_class.build_low_level_dataset(None, config)
        documents = np.arange(40, dtype=np.int32)
        built.append(dataset_class(source, None, documents, 70, splits.train, config))
        nobody_builds()
    assert_same(*built)


class Described(MegatronDataset):
    """The reference's base class, for the description alone."""

    def __len__(self):
        return 0

    def __getitem__(self, index):
        raise IndexError


@settings(max_examples=100, deadline=None)
@given(
    path=st.none() | st.text(max_size=20),
    num_samples=st.none() | st.integers(0, 10**12),
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 10**6),
    shares=st.lists(st.integers(0, 1000), min_size=1, max_size=3).filter(any),
    identity=st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.integers(), max_size=3),
    split=st.sampled_from(list(Split)),
)
def test_descriptions(path, num_samples, seed, length, shares, identity, split):
    changes = {
        "random_seed": seed,
        "sequence_length": length,
        "split": ",".join(map(str, shares)),
        "tokenizer": Tokenizer(identity),
    }
    configs = [
        config_class(blend=(["x"], None), **options(None, **changes))
        for config_class in (GPTDatasetConfig, reference.GPTDatasetConfig)
    ]
    expected = Described(
        None, path, np.arange(0), num_samples, ReferenceSplit[split.name], configs[1]
    )
    description = describe(gpt_identifiers("Described", path, num_samples, split, configs[0]))
    assert description == expected.unique_description
    assert description_hash(description) == expected.unique_description_hash
