"""Whole builder runs over three files: what the reference's builder gave."""

import json
from importlib.resources import files

import numpy as np
import pytest

from coredata.datasets import GPTDatasetConfig
from coredata.datasets.blended import BlendedDataset
from coredata.datasets.builder import BlendedMegatronDatasetBuilder
from coredata.datasets.gpt import GPTDataset
from coredata.formats import IndexedDatasetBuilder
from coredata.text import ByteTokenizer

GOLDEN = files("coredata.testing") / "golden" / "blend"
SETTINGS = json.loads((GOLDEN / "builder.json").read_text())
ARRAYS = dict(np.load(str(GOLDEN / "builder.npz"), allow_pickle=False))
CASES = SETTINGS["cases"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    for name in SETTINGS["prefixes"]:
        tokens, lengths = ARRAYS[f"{name}_tokens"], ARRAYS[f"{name}_lengths"]
        with IndexedDatasetBuilder(str(folder / name), dtype=np.uint16) as builder:
            for document in np.split(tokens, np.cumsum(lengths)[:-1]):
                builder.add_document(document, [len(document)])
            builder.finalize()
    return folder


def placed(blend, folder):
    """The blend with its prefixes in `folder`."""
    return blend and ([str(folder / prefix) for prefix in blend[0]], blend[1])


def build(case, folder, **options):
    given = dict(case["config"])
    if "blend" in given:
        given["blend"] = placed(given["blend"], folder)
    if "blend_per_split" in given:
        given["blend_per_split"] = [placed(blend, folder) for blend in given["blend_per_split"]]
    config = GPTDatasetConfig(
        random_seed=case["random_seed"],
        sequence_length=SETTINGS["sequence_length"],
        tokenizer=ByteTokenizer(),
        mid_level_dataset_surplus=SETTINGS["mid_level_dataset_surplus"],
        **given,
        **options,
    )
    return BlendedMegatronDatasetBuilder(GPTDataset, case["sizes"], config=config).build()


def check(dataset, expected, key, used):
    assert type(dataset).__name__ == expected["type"]
    assert len(dataset) == expected["length"]
    if isinstance(dataset, BlendedDataset):
        assert [len(part) for part in dataset.datasets] == expected["mid_lengths"]
        assert [part.num_samples for part in dataset.datasets] == expected["mid_num_samples"]
        for name in ("dataset_index", "dataset_sample_index"):
            np.testing.assert_array_equal(
                getattr(dataset, name), ARRAYS[f"{key}_{name}"], strict=True
            )
            used.add(f"{key}_{name}")
    tokens = ARRAYS[f"{key}_tokens"]
    used.add(f"{key}_tokens")
    batch = dataset.get_batch(np.arange(len(tokens)))
    np.testing.assert_array_equal(batch["tokens"], tokens, strict=True)
    for k in (0, len(tokens) - 1):
        np.testing.assert_array_equal(dataset[k]["tokens"], tokens[k])


def check_all(name, datasets):
    used = set()
    for i, (dataset, expected) in enumerate(zip(datasets, CASES[name]["splits"], strict=True)):
        if expected is None:
            assert dataset is None
            continue
        several = isinstance(expected, list)
        assert isinstance(dataset, list) == several
        pairs = zip(dataset, expected, strict=True) if several else [(dataset, expected)]
        for j, (one, its) in enumerate(pairs):
            check(one, its, f"{name}_s{i}_{j}", used)
    assert used == {key for key in ARRAYS if key.startswith(f"{name}_s")}


def test_all_cases_are_there():
    assert len(CASES) == 9


@pytest.mark.parametrize("name", CASES)
def test_cases(name, folder):
    check_all(name, build(CASES[name], folder))


@pytest.mark.parametrize("name", CASES)
def test_cases_with_a_cache_and_threads(name, folder, tmp_path):
    options = {"path_to_cache": str(tmp_path), "num_dataset_builder_threads": 3}
    check_all(name, build(CASES[name], folder, **options))
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert stamps
    check_all(name, build(CASES[name], folder, **options))
    deferred = build(CASES[name], folder, **options, defer_npy_index_mmap=True)
    check_all(name, deferred)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == stamps
