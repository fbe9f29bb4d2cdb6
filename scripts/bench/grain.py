"""Batches on the host, read ahead, beside Grain with megatron-core's GPTDataset as its source."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from coredata import BatchLoader, GPTDataset, GPTDatasetConfig, IndexedDataset, Split
from coredata.sampling import MegatronPretrainingSampler
from coredata.text import ByteTokenizer
from scripts.bench.get_batch import write_corpus
from scripts.bench.harness import Row, compare

BATCH, SEQUENCE_LENGTH = 8, 4096
FIELDS = ("tokens", "labels", "loss_mask", "position_ids")


def rows(full: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        return [row(Path(directory), 100_000_000 if full else 10_000_000)]


def row(directory: Path, tokens: int) -> Row:
    import grain
    from megatron.core.datasets.gpt_dataset import GPTDataset as ReferenceDataset
    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig as ReferenceConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset as ReferenceSource
    from megatron.core.datasets.utils import Split as ReferenceSplit

    prefix = directory / "corpus"
    write_corpus(prefix, tokens)
    settings = {
        "random_seed": 5,
        "sequence_length": SEQUENCE_LENGTH,
        "split": "1",
        "blend": ([str(prefix)], None),
        "tokenizer": ByteTokenizer(),
        "path_to_cache": str(directory / "cache"),
        "create_attention_mask": False,
        "reset_position_ids": False,
        "reset_attention_mask": False,
        "eod_mask_loss": False,
    }
    source = IndexedDataset(str(prefix))
    exposed = np.arange(len(source), dtype=np.int32)
    arguments = (str(prefix), exposed, None)
    dataset = GPTDataset(source, *arguments, Split.train, GPTDatasetConfig(**settings))
    reference = ReferenceDataset(
        ReferenceSource(str(prefix)), *arguments, ReferenceSplit.train, ReferenceConfig(**settings)
    )
    batches = len(dataset) // BATCH

    def ours() -> int:
        sampler = MegatronPretrainingSampler(batches * BATCH, 0, BATCH, 0, 1)
        with BatchLoader(dataset, sampler, prefetch=2) as loader:
            return sum(1 for _ in loader)

    def other() -> int:
        return sum(1 for _ in grains())

    def grains() -> Any:
        data = grain.MapDataset.source(_AsNumpy(reference))[: batches * BATCH]
        read = grain.ReadOptions(num_threads=2, prefetch_buffer_size=2 * BATCH)
        return iter(data.to_iter_dataset(read).batch(BATCH))

    def same(a: int, b: int) -> None:
        assert a == b == batches
        sampler = MegatronPretrainingSampler(batches * BATCH, 0, BATCH, 0, 1)
        with BatchLoader(dataset, sampler) as loader:
            for found, expected in zip(loader, grains(), strict=True):
                for field in FIELDS:
                    np.testing.assert_array_equal(found[field], expected[field])

    what = f"{batches} batches of {BATCH} x {SEQUENCE_LENGTH}, prefetch 2; Grain with 2 threads"
    return compare("loader on the host", ours, other, same, what)


class _AsNumpy:
    """A torch dataset as a random-access source of arrays."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        return {name: value.numpy() for name, value in self._dataset[int(index)].items()}
