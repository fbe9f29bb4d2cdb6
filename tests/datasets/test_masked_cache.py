"""Sentence maps in the index cache: written, read back, healed."""

import json
import warnings

import numpy as np
import pytest

from coredata.datasets import IndexCacheError, IndexCacheWarning
from coredata.testing.checks_masked import masked_datasets, random_sentences

BOTH = pytest.mark.parametrize("which", [0, 1], ids=["BERT", "T5"])


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return random_sentences(tmp_path_factory.mktemp("corpus") / "corpus", 3)


def build(prefix, cache, which=0, num_samples=60, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return masked_datasets(prefix, 5, num_samples, path_to_cache=str(cache), **options)[which]


def path_of(cache, dataset, name):
    (path,) = cache.glob(f"{dataset.unique_description_hash}-*-{name}")
    return path


@BOTH
def test_files_of_a_cache(which, prefix, tmp_path, monkeypatch):
    dataset = build(prefix, tmp_path, which)
    stem = f"{dataset.unique_description_hash}-{type(dataset).__name__}-"
    names = sorted(path.name for path in tmp_path.glob(f"{stem}*"))
    ends = ("arrays.pack", "checksums.json", "description.txt", "sample_index.npy")
    assert names == [stem + end for end in ends]
    description = path_of(tmp_path, dataset, "description.txt").read_text()
    assert description == dataset.unique_description
    own = ["classification_head", "sequence_length_decoder"][which]
    assert list(json.loads(description)) == [
        "class",
        "dataset_path",
        "num_samples",
        "index_split",
        "random_seed",
        "sequence_length",
        "split",
        "split_matrix",
        "tokenizer",
        "masking_probability",
        "short_sequence_probability",
        "masking_max_ngram",
        "masking_do_full_word",
        "masking_do_permutation",
        "masking_use_longer_ngrams",
        "masking_use_geometric_distribution",
        own,
    ]
    stored = np.load(path_of(tmp_path, dataset, "sample_index.npy"))
    monkeypatch.setattr("coredata.datasets.masked_index.build_sentence_map", None)
    for options in ({}, {"fast_cache_load": True}):
        again = build(prefix, tmp_path, which, **options)
        np.testing.assert_array_equal(again.sample_index, stored)
        assert again.sample_index.dtype == np.uint32


def test_nothing_is_written_without_a_cache(prefix, tmp_path):
    before = sorted(tmp_path.parent.rglob("*"))
    dataset = masked_datasets(prefix, 5, 60)[0]
    assert len(dataset) >= 60
    assert sorted(tmp_path.parent.rglob("*")) == before


def rewrite(path, change):
    rows = np.load(path)
    np.save(path, change(rows))


def unsigned(path):
    """As the reference leaves a cache: without checksums."""
    for checksums in path.parent.glob("*checksums.json"):
        checksums.unlink()


def swapped(rows):
    rows[[0, 1], 0] = rows[[1, 0], 0]
    return rows


def longer(rows):
    rows[3, 2] = 1000
    return rows


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda rows: rows[:50], r"has 50 rows; 60 are asked"),
        (lambda rows: rows[:, :2].copy(), r"is uint32 of shape \(\d+, 2\), not uint32 of shape"),
        (lambda rows: rows.astype(np.int64), r"is int64 of shape \(\d+, 3\), not uint32"),
        (lambda rows: rows[:-1], r"has \d+ sentences, but an epoch of this split has \d+"),
        (swapped, r"row [01] of sample_index, \[.*\], is not a range of sentences of one document"),
        (longer, r"row 3 of sample_index, .* with a length of 2 to 61"),
    ],
)
def test_caches_of_the_reference_that_do_not_fit_are_built_again(change, text, prefix, tmp_path):
    expected = build(prefix, tmp_path, num_samples=60).sample_index.copy()
    (path,) = tmp_path.glob("*BERT*sample_index.npy")
    rewrite(path, change)
    unsigned(path)
    with pytest.warns(IndexCacheWarning, match=text):
        (healed, _) = masked_datasets(prefix, 5, 60, path_to_cache=str(tmp_path))
    np.testing.assert_array_equal(healed.sample_index, expected)
    build(prefix, tmp_path)


def test_a_map_of_several_epochs_that_lacks_a_row(prefix, tmp_path):
    build(prefix, tmp_path, num_samples=300)
    (path,) = tmp_path.glob("*BERT*sample_index.npy")
    rewrite(path, lambda rows: np.concatenate([rows[1:], rows[1:3]]))
    unsigned(path)
    with pytest.warns(IndexCacheWarning, match="made from other data or settings"):
        masked_datasets(prefix, 5, 300, path_to_cache=str(tmp_path))


def test_a_flipped_byte_is_found_by_the_checksum(prefix, tmp_path):
    expected = build(prefix, tmp_path).sample_index.copy()
    (path,) = tmp_path.glob("*BERT*sample_index.npy")
    data = bytearray(path.read_bytes())
    data[-4] ^= 1
    path.write_bytes(data)
    with pytest.warns(IndexCacheWarning, match="was written"):
        (healed, _) = masked_datasets(prefix, 5, 60, path_to_cache=str(tmp_path))
    np.testing.assert_array_equal(healed.sample_index, expected)


def test_a_map_that_is_missing(prefix, tmp_path):
    build(prefix, tmp_path)
    (path,) = tmp_path.glob("*BERT*sample_index.npy")
    path.unlink()
    with pytest.raises(FileNotFoundError, match="fast_cache_load and workers expect"):
        build(prefix, tmp_path, fast_cache_load=True)
    with pytest.warns(IndexCacheWarning, match="damaged"):
        masked_datasets(prefix, 5, 60, path_to_cache=str(tmp_path))


def test_a_cache_that_cannot_be_written(prefix, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexCacheError, match="cannot write the index cache"):
        build(prefix, tmp_path / "file")


def test_each_setting_has_its_own_cache(prefix, tmp_path):
    hashes = {
        build(prefix, tmp_path, **options).unique_description_hash
        for options in (
            {},
            {"masking_probability": 0.2},
            {"masking_max_ngram": 4},
            {"masking_do_full_word": False},
            {"short_sequence_probability": 0.0},
            {"num_samples": 61},
            {"num_samples": None},
        )
    }
    assert len(hashes) == 7
