"""BERT and T5 as checks: the reference's maps and samples, and what must hold on any corpus."""

import tempfile
from functools import partial
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
from coredata.indices import LONGEST_SENTENCE, Split
from coredata.loading import BatchLoader
from coredata.sampling import MegatronPretrainingSampler
from coredata.testing.checks import Check
from coredata.testing.compare import assert_same_array
from coredata.testing.contract import assert_dataset_contract
from coredata.testing.golden_masked import (
    CORPUS,
    assert_golden_masked,
    golden_masked_tokenizer,
    write_golden_corpus,
)
from coredata.testing.golden_vectors import golden_cases
from coredata.testing.runs import assert_resume_exact

_STEPS = 8


def masked_golden_checks() -> list[Check]:
    """The reference vectors; nothing runs before a check does."""
    return [Check("Reference vectors", "BERT and T5 maps and samples", _golden)]


def masked_invariant_checks(seed: int) -> list[Check]:
    """What must hold on random sentences; nothing runs before a check does."""
    return [Check("Invariants", "BERT and T5 on random sentences", lambda: _invariants(seed))]


def random_sentences(prefix: Path, seed: int, *, documents: int = 60) -> str:
    """A token file of random documents of 0 to 9 sentences, some empty, one too long."""
    random = np.random.default_rng(seed)
    per_document = random.integers(0, 10, documents)
    lengths = random.integers(0, 30, per_document.sum())
    lengths[:1] = LONGEST_SENTENCE + 1
    tokens = random.integers(5, 30, lengths.sum())
    with IndexedDatasetBuilder(prefix, np.uint16) as builder:
        builder.add_documents(tokens, lengths, per_document)
    return str(prefix)


def masked_datasets(
    prefix: str, seed: int, num_samples: int | None, **options: Any
) -> list[MaskedWordPieceDataset]:
    """A BERT and a T5 dataset over all documents of a file."""
    shared: dict[str, Any] = {
        "random_seed": seed,
        "sequence_length": 64,
        "blend": ([prefix], None),
        "split": "1,0,0",
        "tokenizer": golden_masked_tokenizer(),
        **options,
    }
    made: list[MaskedWordPieceDataset] = []
    kinds: list[tuple[Any, Any]] = [
        (BERTMaskedWordPieceDataset, BERTMaskedWordPieceDatasetConfig(**shared)),
        (
            T5MaskedWordPieceDataset,
            T5MaskedWordPieceDatasetConfig(**shared, sequence_length_decoder=64),
        ),
    ]
    for cls, config in kinds:
        source = cls.build_low_level_dataset(prefix, config)
        documents = np.arange(cls.numel_low_level_dataset(source), dtype=np.int32)
        made.append(cls(source, prefix, documents, num_samples, Split.train, config))
    return made


def assert_sentences_once(dataset: MaskedWordPieceDataset) -> None:
    """An epoch has each sentence of the documents that qualify once, and no other.

    Args:
        dataset: made with `num_samples` None.

    Raises:
        AssertionError: a sentence is missing or repeated; it says which.
    """
    source: Any = dataset.dataset
    bert = isinstance(dataset, BERTMaskedWordPieceDataset)
    least = 2 if bert and dataset.config.classification_head else 1
    expected = np.zeros(len(source), np.int64)
    for document in dataset.indices.tolist():
        begin, end = source.document_indices[document : document + 2].tolist()
        longest = max(source.sequence_lengths[begin:end].tolist(), default=0)
        if end - begin >= least and (end - begin == 1 or longest <= LONGEST_SENTENCE):
            expected[begin:end] = 1
    found = np.zeros(len(source), np.int64)
    for first, last, _ in dataset.sample_index.tolist():
        found[first:last] += 1
    assert_same_array(found, expected, f"{type(dataset).__name__}, how often each sentence occurs")


def _golden() -> str:
    cases = golden_cases("masked", without=(CORPUS,))
    with tempfile.TemporaryDirectory() as directory:
        prefix = write_golden_corpus(Path(directory) / "corpus")
        for case in cases:
            assert_golden_masked(case, prefix)
    return f"{len(cases)} settings, every field"


def _invariants(seed: int) -> str:
    with tempfile.TemporaryDirectory() as directory:
        prefix = random_sentences(Path(directory) / "random", seed)
        for dataset in masked_datasets(prefix, seed, None):
            assert_sentences_once(dataset)
        for dataset in masked_datasets(prefix, seed, 100):
            assert_dataset_contract(dataset)
            sampler = MegatronPretrainingSampler(len(dataset), 0, 4, 0, 2)
            assert_resume_exact(partial(BatchLoader, dataset, sampler), _STEPS, follow=3)
    return f"every sentence once per epoch, contract, {_STEPS} resumes"
