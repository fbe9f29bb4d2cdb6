"""Caches that are sound, and every way in which one is not."""

import json
from dataclasses import replace

import numpy as np
import pytest

from coredata.datasets import BlendedMegatronDatasetBuilder, GPTDataset, GPTDatasetConfig
from coredata.datasets.cache_check import find_cache_faults
from coredata.datasets.cache_files import find_caches, unfinished_files
from coredata.datasets.checksum import checksum_of_bytes
from coredata.indices import Split
from coredata.testing.checks_masked import masked_datasets, random_sentences
from coredata.text import ByteTokenizer


@pytest.fixture
def cache(prefix, tmp_path):
    """The caches of a blend of one file with itself: two datasets of a file, and the blend."""
    config = GPTDatasetConfig(
        random_seed=3,
        sequence_length=8,
        blend=([prefix, prefix], [1, 2]),
        split="80,20,0",
        tokenizer=ByteTokenizer(),
        path_to_cache=str(tmp_path / "cache"),
    )
    BlendedMegatronDatasetBuilder(GPTDataset, [150, 5, None], config=config).build()
    return tmp_path / "cache"


def of(cache, class_name, split="train"):
    """One cache of a class, and the path of one of its files."""
    files = next(
        f for f in find_caches(str(cache)) if (f.class_name, f.split_name) == (class_name, split)
    )
    return files, lambda name: cache / f"{files.key}-{name}"


def fault(files):
    (text,) = find_cache_faults(files).faults
    return text


def without_checksums(path):
    path("checksums.json").unlink()


def put(path, name, change):
    array = np.load(path(f"{name}.npy"))
    change(array)
    np.save(path(f"{name}.npy"), array)


def test_what_is_sound(cache):
    found = [find_cache_faults(files) for files in find_caches(str(cache))]
    kinds = [(one.files.class_name, one.files.split_name, one.compared) for one in found]
    blends = [("BlendedDataset", "train", False), ("BlendedDataset", "valid", False)]
    gpt = [("GPTDataset", split, True) for split in ("train", "train", "valid", "valid")]
    assert kinds == blends + gpt
    assert all(one.faults == () and one.checksums for one in found)
    assert set(found[2].shapes) == {"document_index", "sample_index", "shuffle_index"}
    assert found[2].files.size > 1000


def test_the_same_without_checksums_and_without_the_data(cache, prefix, tmp_path):
    for path in cache.glob("*checksums.json"):
        path.unlink()
    found = [find_cache_faults(files) for files in find_caches(str(cache))]
    assert all(one.faults == () and not one.checksums for one in found)
    (tmp_path / "corpus_text_document.bin").unlink()
    found = [find_cache_faults(files) for files in find_caches(str(cache))]
    assert all(one.faults == () and not one.compared for one in found)


def test_descriptions(cache):
    files, path = of(cache, "GPTDataset")
    text = path("description.txt").read_text()
    path("description.txt").write_text(text + " ")
    assert "has the MD5" in fault(files)
    assert "is named" in fault(files)
    path("description.txt").unlink()
    assert "is missing; it is written last, so this cache is incomplete" in fault(
        of(cache, "GPTDataset")[0]
    )


def test_another_class_in_the_name(cache):
    files, path = of(cache, "BlendedDataset")
    for name in files.names:
        path(name).rename(cache / f"{files.digest}-Other-train-{name}")
    text = find_cache_faults(of(cache, "Other")[0]).faults[0]
    assert "is of class 'BlendedDataset', but is named Other" in text


@pytest.mark.parametrize("name", ["document_index", "sample_index", "shuffle_index"])
def test_checksums_find_any_change(cache, name):
    files, path = of(cache, "GPTDataset")
    put(path, name, lambda array: array.reshape(-1).__setitem__(-1, 1))
    assert f"{name}.npy has" in fault(files)
    path(f"{name}.npy").write_bytes(path(f"{name}.npy").read_bytes()[:-1])
    assert "its header" in fault(files)
    path(f"{name}.npy").unlink()
    assert f"{name}.npy is missing" in fault(of(cache, "GPTDataset")[0])


def test_checksums_that_are_damaged(cache):
    files, path = of(cache, "GPTDataset")
    path("checksums.json").write_text("{")
    assert "checksums.json cannot be read: " in fault(files)
    path("checksums.json").write_text("[]")
    assert "checksums.json is not a JSON object" in fault(files)


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("document_index", lambda a: a.__setitem__(0, 49), "entry 0 of the document index is"),
        ("document_index", lambda a: a.__setitem__(3, a[4]), "document that occurs too often"),
        ("sample_index", lambda a: a.__setitem__((2, 1), 0), "row . of the sample index does not"),
        ("shuffle_index", lambda a: a.__setitem__(0, a[1]), "of the shuffle index repeats"),
    ],
)
def test_contents_are_held_to_the_data(cache, name, change, text):
    files, path = of(cache, "GPTDataset")
    without_checksums(path)
    put(path, name, change)
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(fault(of(cache, "GPTDataset")[0]))
    assert files.key in fault(of(cache, "GPTDataset")[0])


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("document_index", lambda a: a.__setitem__(0, a[1]), "documents more often than others"),
        ("sample_index", lambda a: a.__setitem__((2, 0), 10**6), "goes backwards, or past the"),
        ("sample_index", lambda a: a.__setitem__((2, 1), -1), "negative offsets"),
        ("shuffle_index", lambda a: a.__setitem__(0, a[1]), "the shuffle index is no permutation"),
    ],
)
def test_without_the_data_contents_are_held_to_each_other(cache, tmp_path, name, change, text):
    (tmp_path / "corpus_text_document.bin").unlink()
    _, path = of(cache, "GPTDataset")
    without_checksums(path)
    put(path, name, change)
    assert text in fault(of(cache, "GPTDataset")[0])


def test_blends(cache):
    _, path = of(cache, "BlendedDataset")
    without_checksums(path)
    put(path, "dataset_sample_index", lambda a: a.__setitem__(5, 77))
    text = "entry 5 is sample 77 of dataset"
    assert text in fault(of(cache, "BlendedDataset")[0])
    np.save(path("dataset_index.npy"), np.zeros(3, np.int16))
    assert "have shapes (3,) and (150,)" in fault(of(cache, "BlendedDataset")[0])


def test_arrays_of_other_classes_have_their_checksums_compared(tmp_path):
    from coredata.datasets import IndexCache

    IndexCache(str(tmp_path), json.dumps({"class": "Some"}), "Some", "all").store(
        {"numbers": np.arange(5)}
    )
    (files,) = find_caches(str(tmp_path))
    assert find_cache_faults(files).faults == ()
    np.save(files.path("numbers.npy"), np.arange(5) + 1)
    assert "numbers.npy has" in fault(files)


def test_arrays_that_are_missing_and_nobody_recorded(cache):
    _, path = of(cache, "GPTDataset")
    for name in ("checksums.json", "document_index.npy", "shuffle_index.npy"):
        path(name).unlink()
    faults = find_cache_faults(of(cache, "GPTDataset")[0]).faults
    assert len(faults) == 2
    assert all("is missing" in text for text in faults)


@pytest.mark.parametrize("which", [0, 1], ids=["BERT", "T5"])
def test_sentence_maps(tmp_path, which):
    prefix = random_sentences(tmp_path / "corpus", 3)
    dataset = masked_datasets(prefix, 5, 100)[which]
    config = replace(dataset.config, path_to_cache=str(tmp_path / "cache"))
    type(dataset)(dataset.dataset, prefix, dataset.indices, 100, Split.train, config)
    (files,) = find_caches(str(tmp_path / "cache"))
    found = find_cache_faults(files)
    assert (found.faults, found.compared, found.checksums) == ((), True, True)
    without_checksums(lambda name: tmp_path / "cache" / f"{files.key}-{name}")
    rows = np.load(files.path("sample_index.npy"))
    rows[3, 1] += 1
    np.save(files.path("sample_index.npy"), rows)
    (files,) = find_caches(str(tmp_path / "cache"))
    assert "sample_index" in fault(files)


def test_names_without_a_split(tmp_path):
    from coredata.datasets import IndexCache

    IndexCache(str(tmp_path), json.dumps({"class": "Some"}), "Some", "").store({"a": np.arange(3)})
    (files,) = find_caches(str(tmp_path))
    assert (files.split_name, files.arrays) == ("", ("a",))
    assert find_cache_faults(files).faults == ()


def test_unfinished_files(cache):
    files, _ = of(cache, "GPTDataset")
    name = f".{files.key}-document_index.npy.0123456789ab.tmp"
    (cache / name).touch()
    assert unfinished_files(str(cache)) == [name]
    assert len(find_caches(str(cache))) == 6


def test_a_copy_of_small_arrays_that_is_not_theirs(cache):
    files, path = of(cache, "GPTDataset")
    whole = path("arrays.pack").read_bytes()
    path("arrays.pack").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert fault(files).endswith("arrays.pack holds arrays that are not as written")
    header, content = whole.split(b"\n", 1)
    other = bytes([content[0] ^ 1]) + content[1:]
    told = json.loads(header) | {"checksum": checksum_of_bytes(other)}
    path("arrays.pack").write_bytes(json.dumps(told).encode() + b"\n" + other)
    assert "arrays.pack has another document_index than " in fault(files)
