"""Whole runs of the dataset builder, held to the reference's."""

from pathlib import Path
from typing import Any

import numpy as np

from coredata.datasets import BlendedMegatronDatasetBuilder, GPTDataset, GPTDatasetConfig
from coredata.indices import Split
from coredata.testing.compare import assert_same_array
from coredata.testing.corpora import write_corpus
from coredata.testing.golden_vectors import GoldenCase
from coredata.text import ByteTokenizer


def assert_golden_builder(case: GoldenCase, directory: Path) -> int:
    """Every run of the case builds the reference's datasets; returns how many runs there are.

    The files that the runs read are written to `directory`.

    Raises:
        AssertionError: something differs; it names the run, the split and what differs.
    """
    for prefix in case.settings["prefixes"]:
        lengths = case.arrays[f"{prefix}_lengths"]
        documents = np.split(case.arrays[f"{prefix}_tokens"], np.cumsum(lengths)[:-1])
        write_corpus(directory / prefix, documents)
    runs = case.settings["cases"]
    for name, run in runs.items():
        config = GPTDatasetConfig(
            random_seed=run["random_seed"],
            sequence_length=case.settings["sequence_length"],
            mid_level_dataset_surplus=case.settings["mid_level_dataset_surplus"],
            tokenizer=ByteTokenizer(),
            **_placed(run["config"], directory),
        )
        built = BlendedMegatronDatasetBuilder(GPTDataset, run["sizes"], None, config).build()
        for split, dataset, expected in zip(Split, built, run["splits"], strict=True):
            what = f"{case}, run {name}, {split.name}"
            keys = f"{name}_s{split.value}"
            if not isinstance(expected, list):
                _assert_built(dataset, expected, case, f"{keys}_0", what)
                continue
            assert_same_array(len(dataset), len(expected), f"{what}, number of datasets")
            for number, (one, wanted) in enumerate(zip(dataset, expected, strict=True)):
                _assert_built(one, wanted, case, f"{keys}_{number}", f"{what} {number}")
    return len(runs)


def _placed(config: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The settings of a run, with its prefixes in `directory`."""

    def place(blend: Any) -> Any:
        if blend is None:
            return None
        prefixes, weights = blend
        return [str(directory / prefix) for prefix in prefixes], weights

    placed = dict(config)
    if "blend" in config:
        placed["blend"] = place(config["blend"])
    if "blend_per_split" in config:
        placed["blend_per_split"] = [place(blend) for blend in config["blend_per_split"]]
    return placed


def _assert_built(
    dataset: Any, expected: dict[str, Any] | None, case: GoldenCase, key: str, what: str
) -> None:
    """Class, length, parts, blend and first samples of one dataset."""
    if expected is None or dataset is None:
        if dataset is not expected:
            raise AssertionError(f"{what}: is {dataset}, expected {expected}")
        return
    kind = type(dataset).__name__
    if kind != expected["type"]:
        raise AssertionError(f"{what}: is a {kind}, expected a {expected['type']}")
    assert_same_array(len(dataset), expected["length"], f"{what}, length")
    if "mid_lengths" in expected:
        lengths = [len(part) for part in dataset.datasets]
        assert_same_array(lengths, expected["mid_lengths"], f"{what}, lengths of the parts")
        asked = [part.num_samples for part in dataset.datasets]
        if asked != expected["mid_num_samples"]:
            raise AssertionError(
                f"{what}, samples asked of the parts: {asked}, expected "
                f"{expected['mid_num_samples']}"
            )
        for name in ("dataset_index", "dataset_sample_index"):
            assert_same_array(
                getattr(dataset, name), case.arrays[f"{key}_{name}"], f"{what}, {name}"
            )
    tokens = case.arrays[f"{key}_tokens"]
    read = dataset.get_batch(np.arange(len(tokens)))["tokens"]
    assert_same_array(read, tokens, f"{what}, tokens")
