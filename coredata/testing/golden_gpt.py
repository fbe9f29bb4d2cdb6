"""GPT indices, samples, mock data and cache names, held to the reference's."""

import warnings

import numpy as np

from coredata.datasets import GPTDataset, GPTDatasetConfig, MockGPTDataset
from coredata.datasets.sources import ArraySource
from coredata.indices import Split
from coredata.testing.compare import assert_same_array
from coredata.testing.golden_vectors import GoldenCase
from coredata.text import ByteTokenizer

OTHER_GPT_CASES = ("mock", "cache_identity")
"""Cases of the folder that are not a corpus with its indices."""

_INDICES = ("document_index", "sample_index", "shuffle_index")
_SAMPLES = "samples_"


def golden_gpt_dataset(case: GoldenCase) -> GPTDataset:
    """The dataset that a case describes, over its corpus in memory."""
    given = case.settings
    config = GPTDatasetConfig(
        random_seed=given["random_seed"],
        sequence_length=given["sequence_length"],
        blend=([case.name], None),
        split="1,1,1",
        tokenizer=ByteTokenizer(eod=given["eod"], pad=given["pad"]),
        reset_position_ids=given["reset_position_ids"],
        reset_attention_mask=given["reset_attention_mask"],
        eod_mask_loss=given["eod_mask_loss"],
        create_attention_mask="samples_attention_mask" in case.arrays,
        add_extra_token_to_sequence=given["add_extra_token_to_sequence"],
        drop_last_partial_validation_sequence=given["drop_last_partial_validation_sequence"],
        inter_document_masking=given["inter_document_masking"],
    )
    source = ArraySource(case.arrays["flat_tokens"], case.arrays["doc_lengths"], case.name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, message=".*pad")
        return GPTDataset(
            source,
            None,
            case.arrays["indices"],
            given["num_samples"],
            Split[given["index_split"]],
            config,
        )


def assert_golden_gpt(case: GoldenCase) -> None:
    """Length, the three indices and the samples of a case are the reference's, dtypes included.

    Raises:
        AssertionError: something differs; it names the case, the field and the place.
    """
    dataset = golden_gpt_dataset(case)
    assert_same_array(len(dataset), case.settings["length"], f"{case}, length")
    for name in _INDICES:
        assert_same_array(getattr(dataset, name), case.arrays[name], f"{case}, {name}")
    recorded = np.arange(case.settings["samples_recorded"])
    batch = dataset.get_batch(recorded)
    fields = [name for name in case.arrays if name.startswith(_SAMPLES)]
    for name in fields:
        field = name.removeprefix(_SAMPLES)
        if field not in batch:
            raise AssertionError(f"{case}, field {field}: the batch has only {sorted(batch)}")
        expected = case.arrays[name]
        if field == "cu_seqlens":
            expected = _without_empty(expected)
        assert_same_array(batch[field], expected, f"{case}, field {field}")
        assert_same_array(dataset[0][field], expected[0], f"{case}, field {field} alone")
    assert_same_array(
        dataset[None]["loss_mask"], case.arrays["none_loss_mask"], f"{case}, padding's loss_mask"
    )


def _without_empty(cu_seqlens: np.ndarray) -> np.ndarray:
    """Document boundaries without those of empty documents, which the reference repeats."""
    boundaries = np.full_like(cu_seqlens, cu_seqlens.max())
    for row, given in zip(boundaries, cu_seqlens, strict=True):
        distinct = np.unique(given)
        row[: len(distinct)] = distinct
    return boundaries


def assert_golden_mock(case: GoldenCase) -> None:
    """Length and first samples of the mock splits are the reference's.

    Raises:
        AssertionError: something differs; it names the split and the place.
    """
    given = case.settings
    tokenizer = ByteTokenizer(eod=given["eod"], vocab_size=given["vocab_size"])
    config = GPTDatasetConfig(
        random_seed=given["random_seed"],
        sequence_length=given["sequence_length"],
        tokenizer=tokenizer,
    )
    source = MockGPTDataset.build_low_level_dataset(None, config)
    matrix = config.split_matrix or []
    for split, bounds in zip(Split, matrix, strict=True):
        begin, end = (round(share * len(source)) for share in bounds)
        documents = np.arange(begin, end, dtype=np.int32)
        size = given["sizes"][split.value]
        dataset = MockGPTDataset(source, None, documents, size, split, config)
        what = f"{case}, {split.name}"
        assert_same_array(len(dataset), given["lengths"][split.value], f"{what}, length")
        expected = case.arrays[split.name]
        tokens = dataset.get_batch(np.arange(len(expected)))["tokens"]
        assert_same_array(tokens, expected, f"{what}, tokens")


def assert_golden_cache_identity(case: GoldenCase) -> None:
    """Descriptions of index caches, and the hashes that name their files, are the reference's.

    Raises:
        AssertionError: something differs; it names the split.
    """
    given = case.settings
    config = GPTDatasetConfig(
        random_seed=1234,
        sequence_length=16,
        blend=([given["path"]], None),
        split="90,5,5",
        tokenizer=ByteTokenizer(),
    )
    source = ArraySource(np.arange(4000, dtype=np.int32), np.full(40, 100, np.int32))
    documents = np.arange(40, dtype=np.int32)
    expected = zip(Split, (20, 4, None), given["descriptions"], given["hashes"], strict=True)
    for split, size, description, digest in expected:
        dataset = GPTDataset(source, given["path"], documents, size, split, config)
        for what, actual, wanted in (
            ("description", dataset.unique_description, description),
            ("hash", dataset.unique_description_hash, digest),
        ):
            if actual != wanted:
                raise AssertionError(
                    f"{case}, {what} of {split.name}: is {actual!r}, expected {wanted!r}"
                )
