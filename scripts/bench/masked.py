"""BERT and T5: the sentence map beside megatron-core's C++, samples beside its datasets."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from coredata import (
    BERTMaskedWordPieceDataset,
    BERTMaskedWordPieceDatasetConfig,
    IndexedDatasetBuilder,
    Split,
    T5MaskedWordPieceDataset,
    T5MaskedWordPieceDatasetConfig,
)
from coredata.indices import SentenceSettings, build_sentence_map
from coredata.testing.golden_masked import MaskedTokenizer
from scripts.bench.harness import Row, compare

VOCABULARY = 30_000
BATCH = 32


def rows(full: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        prefix = write_corpus(Path(directory) / "corpus", 20_000 if full else 2_000)
        return [
            sentence_map_row(2_000_000 if full else 200_000),
            *(samples_row(prefix, name, 20 if full else 4) for name in ("BERT", "T5")),
        ]


def sentence_map_row(documents: int) -> Row:
    from megatron.core.datasets import helpers

    random = np.random.default_rng(1)
    per_document = random.integers(0, 40, documents)
    lengths = random.integers(1, 60, per_document.sum()).astype(np.int32)
    boundaries = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_document)])
    exposed = np.arange(documents)
    samples = 5 * documents
    settings = SentenceSettings(509, 0.1, 2, 5)

    def ours():
        return build_sentence_map(boundaries, lengths, exposed, samples, settings)

    def reference():
        return helpers.build_mapping(boundaries, lengths, 2**31 - 2, samples, 509, 0.1, 5, False, 2)

    what = f"{lengths.size:,} sentences, {samples:,} samples"
    return compare("sentence map", ours, reference, np.testing.assert_array_equal, what)


def samples_row(prefix: str, name: str, batches: int) -> Row:
    """One core reads batches; the reference's dataset and torch's collate on the other side."""
    from torch.utils.data import default_collate

    ours_dataset, reference_dataset = both_datasets(prefix, name)
    wanted = np.arange(batches * BATCH).reshape(batches, BATCH)

    def ours():
        for indices in wanted:
            ours_dataset.get_batch(indices)

    def reference():
        for indices in wanted:
            default_collate([reference_dataset[int(i)] for i in indices])

    for indices in wanted:
        found = ours_dataset.get_batch(indices)
        expected = default_collate([reference_dataset[int(i)] for i in indices])
        for field, values in expected.items():
            np.testing.assert_array_equal(found[field], values.numpy())

    def same(_a: Any, _b: Any) -> None:
        """Compared above, batch by batch: the timed runs drop each batch, as a trainer does."""

    what = f"{batches} batches, B {BATCH} x S 512, full words, n-grams"
    return compare(f"{name} samples", ours, reference, same, what)


def both_datasets(prefix: str, name: str) -> tuple[Any, Any]:
    """Ours, and the reference's over our map: it builds none without torch.distributed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference's, at import
        from megatron.core.datasets import bert_dataset, t5_dataset
        from megatron.core.datasets.indexed_dataset import IndexedDataset as ReferenceSource
        from megatron.core.datasets.utils import Split as ReferenceSplit
    own: dict[str, tuple[Any, Any, Any, Any]] = {
        "BERT": (
            BERTMaskedWordPieceDataset,
            BERTMaskedWordPieceDatasetConfig,
            bert_dataset.BERTMaskedWordPieceDataset,
            bert_dataset.BERTMaskedWordPieceDatasetConfig,
        ),
        "T5": (
            T5MaskedWordPieceDataset,
            T5MaskedWordPieceDatasetConfig,
            t5_dataset.T5MaskedWordPieceDataset,
            t5_dataset.T5MaskedWordPieceDatasetConfig,
        ),
    }
    cls, config, reference_cls, reference_config = own[name]
    bert = name == "BERT"
    settings: dict[str, Any] = {
        "random_seed": 5,
        "sequence_length": 512,
        "split": "1",
        "blend": ([prefix], None),
        "tokenizer": word_pieces(),
        "path_to_cache": str(Path(prefix).parent / name),
        "masking_probability": 0.15,
        "short_sequence_probability": 0.1,
        "masking_max_ngram": 3 if bert else 10,
        "masking_do_full_word": True,
        "masking_do_permutation": False,
        "masking_use_longer_ngrams": False,
        "masking_use_geometric_distribution": not bert,
        **({"classification_head": True} if bert else {"sequence_length_decoder": 256}),
    }
    source = cls.build_low_level_dataset(prefix, config(**settings))
    documents = np.arange(cls.numel_low_level_dataset(source), dtype=np.int32)
    made = cls(source, prefix, documents, 1000, Split.train, config(**settings))
    reference_source = ReferenceSource(prefix)
    arguments = (prefix, documents, 1000, ReferenceSplit.train, reference_config(**settings))
    return made, reference_cls(reference_source, *arguments)


def write_corpus(prefix: Path, documents: int) -> str:
    random = np.random.default_rng(3)
    per_document = random.integers(2, 40, documents)
    lengths = random.integers(5, 50, per_document.sum())
    with IndexedDatasetBuilder(prefix, np.uint16) as builder:
        tokens = random.integers(200, VOCABULARY, lengths.sum(), dtype=np.uint16)
        builder.add_documents(tokens, lengths, per_document)
    return str(prefix)


def word_pieces() -> MaskedTokenizer:
    """A vocabulary of which one piece in four continues a word."""
    pieces = {number: f"{'##' if number % 4 == 0 else ''}p{number}" for number in range(VOCABULARY)}
    return MaskedTokenizer(
        pieces,
        cls=1,
        sep=2,
        mask=3,
        bos=1,
        eos=2,
        pad=0,
        additional_special_tokens_ids=list(range(10, 110)),
    )
