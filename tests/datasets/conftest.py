"""Token files for the tests of datasets."""

import numpy as np
import pytest

from coredata.datasets import GPTDataset, GPTDatasetConfig
from coredata.formats import IndexedDatasetBuilder
from coredata.indices import Split
from coredata.text import ByteTokenizer


@pytest.fixture
def prefix(tmp_path):
    """50 documents of 0 to 29 bytes."""
    name = str(tmp_path / "corpus_text_document")
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 30, 50)
    with IndexedDatasetBuilder(name, np.uint16) as builder:
        builder.add_documents(rng.integers(0, 256, lengths.sum()), lengths)
        builder.finalize()
    return name


@pytest.fixture
def from_file():
    """Makes a GPT dataset of a prefix."""

    def build(prefix, documents=None, num_samples=30, cache=None, **options):
        config = GPTDatasetConfig(
            random_seed=1234,
            sequence_length=8,
            blend=([prefix], None),
            split="1",
            tokenizer=ByteTokenizer(),
            path_to_cache=cache,
            **options,
        )
        source = GPTDataset.build_low_level_dataset(prefix, config)
        if documents is None:
            documents = np.arange(GPTDataset.numel_low_level_dataset(source), dtype=np.int32)
        return GPTDataset(source, prefix, documents, num_samples, Split.train, config)

    return build
