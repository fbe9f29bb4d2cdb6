"""GPT indices and samples of the reference, bit for bit."""

import json
import warnings
from importlib.resources import files

import numpy as np
import pytest

from coredata.datasets import ArraySource, GPTDataset, GPTDatasetConfig, MockGPTDataset
from coredata.indices import Split, split_range
from coredata.text import ByteTokenizer

GOLDEN = files("coredata.testing") / "golden" / "gpt"
NAMES = sorted(
    path.name.removesuffix(".npz") for path in GOLDEN.iterdir() if path.name.endswith(".npz")
)
CASES = [name for name in NAMES if name != "mock"]


def load(name):
    settings = json.loads((GOLDEN / f"{name}.json").read_text())
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as arrays:
        return settings, dict(arrays)


def build(settings, arrays, **options):
    config = GPTDatasetConfig(
        random_seed=settings["random_seed"],
        sequence_length=settings["sequence_length"],
        tokenizer=ByteTokenizer(eod=settings["eod"], pad=settings["pad"]),
        blend=(["unused"], None),
        split="1,0,0",
        **{
            name: settings[name]
            for name in (
                "add_extra_token_to_sequence",
                "drop_last_partial_validation_sequence",
                "eod_mask_loss",
                "inter_document_masking",
                "reset_attention_mask",
                "reset_position_ids",
            )
        },
        create_attention_mask=True,
        **options,
    )
    with warnings.catch_warnings():
        if settings["pad"] == settings["eod"]:
            warnings.simplefilter("ignore", UserWarning)
        return GPTDataset(
            ArraySource(arrays["flat_tokens"], arrays["doc_lengths"]),
            None,
            arrays["indices"],
            settings["num_samples"],
            Split[settings["index_split"]],
            config,
        )


def expected_fields(arrays):
    fields = {
        name.removeprefix("samples_"): values
        for name, values in arrays.items()
        if name.startswith("samples_")
    }
    if "cu_seqlens" in fields:
        fields["cu_seqlens"] = without_empty_segments(fields["cu_seqlens"])
    return fields


def without_empty_segments(cu_seqlens):
    """The reference repeats a boundary where a sample starts at the very end of a document."""
    clean = np.full_like(cu_seqlens, cu_seqlens[0, -1])
    for row, boundaries in enumerate(cu_seqlens):
        distinct = np.unique(boundaries)
        clean[row, : len(distinct)] = distinct
    return clean


def assert_identical(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_golden_cases_are_there():
    assert len(CASES) >= 19


def test_one_case_has_empty_segments_in_the_reference():
    differ = []
    for name in CASES:
        _, arrays = load(name)
        boundaries = arrays.get("samples_cu_seqlens")
        if boundaries is not None and (without_empty_segments(boundaries) != boundaries).any():
            differ.append(name)
    assert differ == ["inter_document_no_extra"]


@pytest.mark.parametrize("name", CASES)
def test_indices(name):
    settings, arrays = load(name)
    dataset = build(settings, arrays)
    assert len(dataset) == settings["length"]
    for index in ("document_index", "sample_index", "shuffle_index"):
        assert_identical(getattr(dataset, index), arrays[index])


@pytest.mark.parametrize("name", CASES)
def test_samples_one_by_one(name):
    settings, arrays = load(name)
    dataset = build(settings, arrays)
    expected = expected_fields(arrays)
    for k in range(settings["samples_recorded"]):
        sample = dataset[k]
        assert sample.keys() == expected.keys()
        for field, values in sample.items():
            assert_identical(values, expected[field][k])
    assert_identical(dataset[None]["loss_mask"], arrays["none_loss_mask"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("output_dtype", ["int64", "int32"])
def test_samples_in_a_batch(name, output_dtype):
    settings, arrays = load(name)
    dataset = build(settings, arrays, output_dtype=output_dtype)
    expected = expected_fields(arrays)
    batch = dataset.get_batch(np.arange(settings["samples_recorded"]))
    assert batch.keys() == expected.keys()
    for field, values in batch.items():
        wanted = expected[field]
        if field in ("tokens", "labels", "position_ids"):
            wanted = wanted.astype(output_dtype)
        assert_identical(values, wanted)


@pytest.mark.parametrize("name", CASES)
def test_padding_row_of_a_batch(name):
    settings, arrays = load(name)
    dataset = build(settings, arrays)
    batch = dataset.get_batch(np.array([1, -1, 0]))
    alone = dataset.get_batch(np.array([1, 0, 0]))
    assert_identical(batch["loss_mask"][1], arrays["none_loss_mask"])
    for field, values in batch.items():
        for row in (0, 2) if field == "loss_mask" else (0, 1, 2):
            assert_identical(values[row], alone[field][row])


def test_mock():
    settings, arrays = load("mock")
    config = GPTDatasetConfig(
        random_seed=settings["random_seed"],
        sequence_length=settings["sequence_length"],
        tokenizer=ByteTokenizer(eod=settings["eod"], vocab_size=settings["vocab_size"]),
    )
    source = MockGPTDataset.build_low_level_dataset(None, config)
    for split in Split:
        documents = np.arange(
            *split_range(
                config.split_matrix[split.value], MockGPTDataset.numel_low_level_dataset(source)
            ),
            dtype=np.int32,
        )
        dataset = MockGPTDataset(
            source, None, documents, settings["sizes"][split.value], split, config
        )
        expected = arrays[split.name]
        assert len(dataset) == settings["lengths"][split.value]
        assert_identical(dataset.get_batch(np.arange(len(expected)))["tokens"], expected)
