"""Reading batches of a GPT dataset, beside megatron-core's GPTDataset and torch's collate.

And beside a plain copy loop over the same ranges of tokens, into one array that is used again and
again: the limit for anything that copies tokens at all.
"""

import tempfile
from pathlib import Path

import numba
import numpy as np

from coredata import GPTDataset, GPTDatasetConfig, IndexedDataset, IndexedDatasetBuilder, Split
from coredata.text import ByteTokenizer
from scripts.bench.harness import Row, compare

SHAPES = ((8, 4096), (32, 1024))


def rows(full: bool) -> list[Row]:
    tokens = 100_000_000 if full else 10_000_000
    narrow = {"output_dtype": "int32"}
    resets = {"reset_position_ids": True, "eod_mask_loss": True}
    apart = {"inter_document_masking": True, "eod_mask_loss": True}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        found = [
            *(row(directory, *shape, tokens) for shape in SHAPES),
            *(row(directory, *shape, tokens, **narrow) for shape in SHAPES),
            *(row(directory, *shape, tokens, **resets) for shape in SHAPES),
            *(copy_row(directory, *shape, tokens) for shape in SHAPES),
        ]
        if full:
            found += [
                *(row(directory, *shape, tokens, **apart) for shape in SHAPES),
                *(copy_row(directory, *shape, tokens, **narrow) for shape in SHAPES),
            ]
        return found


@numba.njit(nogil=True)
def copy_loop(tokens, starts, lengths, out):
    """One range of tokens after the other, widened."""
    filled = 0
    for i in range(starts.size):
        source = tokens[starts[i] : starts[i] + lengths[i]]
        target = out[filled : filled + lengths[i]]
        for j in range(source.size):
            target[j] = source[j]
        filled += lengths[i]


def copy_row(
    directory: Path, batch: int, sequence_length: int, tokens: int, **options: object
) -> Row:
    dataset = open_ours(directory, sequence_length, tokens, **options)
    wanted = batches(len(dataset), batch, most_of(tokens))
    dtype = np.dtype(dataset.config.output_dtype)
    ranges = []
    for indices in wanted:
        spans = dataset.order.spans(indices)
        places = np.cumsum(spans.lengths) - spans.lengths
        size = int(spans.lengths.sum())
        found = dataset.dataset.locate(
            spans.sequences, spans.offsets, spans.lengths, size, places, dtype
        )
        ranges.append((*found, spans.lengths))
    out = np.empty(batch * (sequence_length + 1), dtype)

    def ours():
        for indices in wanted:
            dataset.get_batch(indices)

    def other():
        for found in ranges:
            copy_loop(*found, out)

    for indices, found in zip(wanted, ranges, strict=True):
        copy_loop(*found, out)
        text = out.reshape(batch, sequence_length + 1)
        np.testing.assert_array_equal(text[:, :-1], dataset.get_batch(indices)["tokens"])

    def same(_a, _b):
        """Compared above, batch by batch."""

    what = f"B {batch} x S {sequence_length}, uint16 -> {dtype.name}, beside a plain copy loop"
    return compare("get_batch", ours, other, same, what)


def batches(samples: int, batch: int, most: int = 300) -> np.ndarray:
    """The first batches, or as many as there are."""
    return np.arange(min(samples, most * batch) // batch * batch).reshape(-1, batch)


def most_of(tokens: int) -> int:
    """How many batches: a sixth in the small form."""
    return 300 if tokens > 10_000_000 else 50


def settings_of(directory: Path, sequence_length: int, **options: object) -> dict:
    return {
        "random_seed": 5,
        "sequence_length": sequence_length,
        "split": "1",
        "blend": ([str(directory / "corpus")], None),
        "tokenizer": ByteTokenizer(),
        "path_to_cache": str(directory / "cache"),
        "create_attention_mask": False,
        "reset_position_ids": False,
        "reset_attention_mask": False,
        "eod_mask_loss": False,
        **options,
    }


def open_ours(directory: Path, sequence_length: int, tokens: int, **options: object) -> GPTDataset:
    prefix = directory / "corpus"
    if not prefix.with_suffix(".idx").exists():
        write_corpus(prefix, tokens)
    source = IndexedDataset(str(prefix))
    exposed = np.arange(len(source), dtype=np.int32)
    config = GPTDatasetConfig(**settings_of(directory, sequence_length, **options))
    return GPTDataset(source, str(prefix), exposed, None, Split.train, config)


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


def row(directory: Path, batch: int, sequence_length: int, tokens: int, **options: object) -> Row:
    from megatron.core.datasets.gpt_dataset import GPTDataset as ReferenceDataset
    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig as ReferenceConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset as ReferenceSource
    from megatron.core.datasets.utils import Split as ReferenceSplit
    from torch.utils.data import default_collate

    ours_dataset = open_ours(directory, sequence_length, tokens, **options)
    # megatron-core 0.16 has no boundaries between documents: its nearest is to reset positions.
    known = {name: value for name, value in options.items() if name != "output_dtype"}
    known = {
        "reset_position_ids" if name == "inter_document_masking" else name: value
        for name, value in known.items()
    }
    prefix = str(directory / "corpus")
    reference_dataset = ReferenceDataset(
        ReferenceSource(prefix),
        prefix,
        ours_dataset.indices,
        None,
        ReferenceSplit.train,
        ReferenceConfig(**settings_of(directory, sequence_length, **known)),
    )
    wanted = batches(len(ours_dataset), batch, most_of(tokens))

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

    dtype = ours_dataset.config.output_dtype
    extra = "".join(f", {name}" for name in sorted(set(options) - {"output_dtype"}))
    what = f"B {batch} x S {sequence_length}, uint16 -> {dtype}{extra}"
    return compare("get_batch", ours, reference, same, what)
