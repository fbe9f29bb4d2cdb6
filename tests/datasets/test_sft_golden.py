"""Datasets of conversations against the reference vectors, through their own interface."""

import json

import numpy as np
import pytest

from coredata.datasets import (
    ItemList,
    MockSFTDataset,
    MockVarlenDataset,
    SFTDataset,
    SFTDatasetConfig,
    VarlenDataset,
    VarlenDatasetConfig,
)
from coredata.indices import Split
from coredata.testing.compare import assert_same_batch
from coredata.testing.golden_vectors import golden_cases
from coredata.text import ByteConversationTokenizer

CASES = [
    case for folder in ("sft", "varlen") for case in golden_cases(folder, without=("schemas",))
]


def dataset_of(case, directory):
    settings = dict(case.settings)
    pad = settings.get("pad", 257)
    common = {"random_seed": 1, "tokenizer": ByteConversationTokenizer(pad=pad)}
    if "first_lengths" in settings:
        mock = settings["mock"]
        if mock is not None and "path" in mock:
            path = directory / "lens.csv"
            path.write_text("\n".join(["length", *map(str, settings["csv_lengths"])]))
            mock = {**mock, "path": str(path)}
        text = None if mock is None else json.dumps(mock)
        sizes = {name: settings[name] for name in ("sequence_length", "context_parallel_size")}
        if case.name.endswith("_sft"):
            config = SFTDatasetConfig(**common, **sizes, sft_mock_dataset_config_json=text)
            kind = MockSFTDataset
        else:
            config = VarlenDatasetConfig(**common, **sizes, varlen_mock_dataset_config_json=text)
            kind = MockVarlenDataset
        source = kind.build_low_level_dataset(None, config)
    else:
        kind = SFTDataset if case.folder == "sft" else VarlenDataset
        config_kind = SFTDatasetConfig if case.folder == "sft" else VarlenDatasetConfig
        config = config_kind(**common, **settings["config"], blend=(["x"], None), split="1")
        source = ItemList(settings["rows" if case.folder == "sft" else "items"])
    rows = np.arange(kind.numel_low_level_dataset(source))
    return kind(source, None, rows, settings["count"], Split.train, config)


def test_the_vectors_are_there():
    assert len(CASES) == 17


@pytest.mark.parametrize("case", CASES, ids=str)
def test_samples_match_the_reference(case, tmp_path):
    dataset = dataset_of(case, tmp_path)
    count = case.settings["count"]
    assert len(dataset) == count
    for number, sample in enumerate(dataset.__getitems__(list(range(count)))):
        prefix = f"{number}_"
        expected = {k[len(prefix) :]: v for k, v in case.arrays.items() if k.startswith(prefix)}
        assert_same_batch(sample, expected, f"{case}, sample {number}")
