"""Reading batches of a GPT dataset, beside megatron-core's GPTDataset and torch's collate."""

from pathlib import Path

import numpy as np

from coredata import GPTDataset, GPTDatasetConfig, IndexedDataset, IndexedDatasetBuilder, Split
from coredata.text import ByteTokenizer
from scripts.bench.harness import Row, compare


def write_corpus(prefix: Path, tokens: int) -> None:
    rng = np.random.default_rng(3)
    with IndexedDatasetBuilder(str(prefix), dtype=np.uint16) as builder:
        written = 0
        while written < tokens:
            lengths = rng.integers(16, 2000, 1000)
            flat = rng.integers(0, 256, int(lengths.sum()), dtype=np.uint16)
            flat[np.cumsum(lengths) - 1] = ByteTokenizer().eod
            builder.add_documents(flat, lengths)
            written += flat.size


def row(directory: Path, batch: int, sequence_length: int, tokens: int, **options: bool) -> Row:
    from megatron.core.datasets.gpt_dataset import GPTDataset as ReferenceDataset
    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig as ReferenceConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset as ReferenceSource
    from megatron.core.datasets.utils import Split as ReferenceSplit
    from torch.utils.data import default_collate

    prefix = directory / "corpus"
    if not prefix.with_suffix(".idx").exists():
        write_corpus(prefix, tokens)
    settings = {
        "random_seed": 5,
        "sequence_length": sequence_length,
        "split": "1",
        "blend": ([str(prefix)], None),
        "tokenizer": ByteTokenizer(),
        "path_to_cache": str(directory / "cache"),
        "create_attention_mask": False,
        "reset_position_ids": False,
        "reset_attention_mask": False,
        "eod_mask_loss": False,
        **options,
    }
    source = IndexedDataset(str(prefix))
    exposed = np.arange(len(source), dtype=np.int32)
    arguments = (str(prefix), exposed, None)
    ours_dataset = GPTDataset(source, *arguments, Split.train, GPTDatasetConfig(**settings))
    reference_dataset = ReferenceDataset(
        ReferenceSource(str(prefix)), *arguments, ReferenceSplit.train, ReferenceConfig(**settings)
    )
    wanted = np.arange(min(len(ours_dataset), 300 * batch) // batch * batch).reshape(-1, batch)

    def ours():
        for indices in wanted:
            ours_dataset.get_batch(indices)

    def reference():
        for indices in wanted:
            default_collate([reference_dataset[i] for i in indices])

    for indices in wanted:
        found = ours_dataset.get_batch(indices)
        expected = default_collate([reference_dataset[i] for i in indices])
        for field in ("tokens", "labels", "loss_mask", "position_ids"):
            np.testing.assert_array_equal(found[field], expected[field].numpy())

    def same(_a, _b):
        """Compared above, batch by batch: the timed runs drop each batch, as a trainer does."""

    extra = ", ".join(sorted(options))
    what = f"B {batch} x S {sequence_length}, uint16 -> int64{', ' if extra else ''}{extra}"
    return compare("get_batch", ours, reference, same, what)
