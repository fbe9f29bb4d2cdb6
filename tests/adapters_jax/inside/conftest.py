from pathlib import Path

import pytest

from coredata.datasets import BlendedMegatronDatasetBuilder, GPTDataset, GPTDatasetConfig
from coredata.testing import random_corpus, write_corpus
from coredata.text import NullTokenizer


def gpt_dataset(directory: Path, samples: int = 200, **options):
    prefix = write_corpus(directory / "corpus", random_corpus(7, documents=60, longest=40))
    config = GPTDatasetConfig(
        random_seed=11,
        sequence_length=16,
        blend=([prefix], None),
        split="1,0,0",
        tokenizer=NullTokenizer(300),
        path_to_cache=None,
        segment_ids=True,
        **options,
    )
    train, _, _ = BlendedMegatronDatasetBuilder(
        GPTDataset, [samples, 0, 0], lambda: True, config
    ).build()
    return train


@pytest.fixture(scope="session")
def gpt(tmp_path_factory):
    return gpt_dataset(tmp_path_factory.mktemp("gpt"))
