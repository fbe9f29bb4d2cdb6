"""BERT and T5: sentence maps and samples, held to the reference's."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coredata.datasets import (
    BERTMaskedWordPieceDataset,
    BERTMaskedWordPieceDatasetConfig,
    MaskedWordPieceDataset,
    T5MaskedWordPieceDataset,
    T5MaskedWordPieceDatasetConfig,
)
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split
from coredata.testing.compare import assert_same_array
from coredata.testing.golden_vectors import GoldenCase, golden_case

CORPUS = "corpus"
"""The case of the folder that is the corpus of all others."""


@dataclass(frozen=True)
class MaskedTokenizer:
    """What masking asks of a tokenizer: ids, and the texts of tokens."""

    inv_vocab: dict[int, str]
    cls: int
    sep: int
    mask: int
    bos: int
    eos: int
    pad: int
    additional_special_tokens_ids: list[int]
    unique_identifiers: dict[str, Any] = field(
        default_factory=lambda: {"class": "MaskedTokenizer"}, compare=False
    )


def golden_masked_tokenizer() -> MaskedTokenizer:
    """The tokenizer of the corpus."""
    given = golden_case("masked", CORPUS).settings
    ids = {role: given[role] for role in ("cls", "sep", "mask", "bos", "eos", "pad")}
    vocabulary = {int(number): piece for number, piece in given["inv_vocab"].items()}
    return MaskedTokenizer(vocabulary, **ids, additional_special_tokens_ids=given["sentinels"])


def write_golden_corpus(prefix: Path) -> str:
    """Write the corpus as a token file; returns its prefix."""
    arrays = golden_case("masked", CORPUS).arrays
    with IndexedDatasetBuilder(prefix, np.int32) as builder:
        builder.add_documents(
            arrays["flat_tokens"], arrays["sequence_lengths"], np.diff(arrays["document_indices"])
        )
    return str(prefix)


def golden_masked_dataset(case: GoldenCase, prefix: str) -> MaskedWordPieceDataset:
    """The dataset that a case describes, over the corpus at `prefix`."""
    options = {**case.settings["config"], "tokenizer": golden_masked_tokenizer()}
    cls: Any = BERTMaskedWordPieceDataset
    config: Any = BERTMaskedWordPieceDatasetConfig
    if "sequence_length_decoder" in options:
        cls, config = T5MaskedWordPieceDataset, T5MaskedWordPieceDatasetConfig
    settings = config(blend=([prefix], None), **options)
    source = cls.build_low_level_dataset(prefix, settings)
    documents = np.arange(cls.numel_low_level_dataset(source), dtype=np.int32)
    samples = case.settings["num_samples"]
    return cls(source, prefix, documents, samples, Split.train, settings)


def assert_golden_masked(case: GoldenCase, prefix: str) -> None:
    """Length, sentence map and samples of a case are the reference's, dtypes included.

    Raises:
        AssertionError: something differs; it names the case, the field and the place.
    """
    dataset = golden_masked_dataset(case, prefix)
    expected = dict(case.arrays)
    assert_same_array(len(dataset), case.settings["length"], f"{case}, length")
    assert_same_array(dataset.sample_index, expected.pop("sample_index"), f"{case}, sample_index")
    recorded = np.arange(len(next(iter(expected.values()))))
    batch = dataset.get_batch(recorded)
    if batch.keys() != expected.keys():
        raise AssertionError(f"{case}: fields are {sorted(batch)}, expected {sorted(expected)}")
    for name, values in expected.items():
        assert_same_array(batch[name], values, f"{case}, field {name}")
    for sample in recorded.tolist():
        for name, value in dataset[sample].items():
            what = f"{case}, field {name} of sample {sample} alone"
            assert_same_array(value, expected[name][sample], what)
