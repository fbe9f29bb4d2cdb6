"""Checking a token file, beside a plain read of it; finding a document's steps, beside a scan."""

import tempfile
from pathlib import Path

import numpy as np

from coredata import GPTDataset, GPTDatasetConfig, IndexedDataset, IndexedDatasetBuilder, Split
from coredata.datasets import steps_of_document
from coredata.formats import verify_indexed
from coredata.sampling import GlobalBatchSampler, TrainingSteps
from coredata.text import NullTokenizer
from scripts.bench.harness import Row, compare

VOCABULARY = 50_000
_BLOCK = 1 << 22


def rows(full: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as directory:
        prefix = str(Path(directory) / "corpus")
        write_corpus(prefix, 1_000_000_000 if full else 100_000_000)
        return [_verify(prefix), _trace(prefix)]


def write_corpus(prefix: str, tokens: int) -> None:
    rng = np.random.default_rng(4)
    with IndexedDatasetBuilder(prefix, dtype=np.uint16) as builder:
        written = 0
        while written < tokens:
            lengths = rng.integers(16, 2000, 10_000)
            flat = rng.integers(0, VOCABULARY, int(lengths.sum()), dtype=np.uint16)
            builder.add_documents(flat, lengths)
            written += flat.size


def _verify(prefix: str) -> Row:
    """Structure, pointers, documents and every id, beside reading both files into a buffer."""

    def ours():
        found = verify_indexed(prefix, VOCABULARY)
        return found.tokens * 2

    def plain():
        buffer = bytearray(_BLOCK)
        read = {".bin": 0, ".idx": 0}
        for suffix in read:
            with open(prefix + suffix, "rb", buffering=0) as file:
                while count := file.readinto(buffer):
                    read[suffix] += count
        return read[".bin"]

    def same(a, b):
        assert a == b, (a, b)

    size = IndexedDataset(prefix).bin_reader.size
    return compare("verify", ours, plain, same, f"{size / 1e9:.1f} GB of uint16, warm page cache")


def _trace(prefix: str) -> Row:
    """Which steps saw a document, beside looking at the spans of every sample in blocks."""
    source = IndexedDataset(prefix)
    config = GPTDatasetConfig(
        random_seed=5,
        sequence_length=4096,
        split="1",
        blend=([prefix], None),
        tokenizer=NullTokenizer(VOCABULARY),
    )
    exposed = np.arange(len(source), dtype=np.int32)
    samples = int(2.5 * int(source.sequence_lengths.sum(dtype=np.int64))) // 4096
    dataset = GPTDataset(source, prefix, exposed, samples, Split.train, config)
    steps = TrainingSteps(GlobalBatchSampler(len(dataset), 0, 64), 64)
    document = len(source) // 3

    def ours():
        found = steps_of_document(dataset, steps, document)
        return found.steps.tolist()

    def scan():
        seen = []
        for first in range(0, len(dataset), 1 << 14):
            numbers = np.arange(first, min(first + (1 << 14), len(dataset)))
            spans = dataset.order.spans(numbers)
            rows = np.repeat(numbers, np.diff(spans.row_splits))
            seen += np.unique(rows[spans.sequences == document]).tolist()
        return [sample // 64 for sample in seen if sample // 64 < len(steps)]

    def same(a, b):
        assert a == b, (a, b)

    what = f"{len(source):,} documents, {len(dataset):,} samples, 3 epochs"
    return compare("document → steps", ours, scan, same, what)


if __name__ == "__main__":
    import sys

    from scripts.bench.harness import table

    print(table(rows("--full" in sys.argv)))
