"""Building the three GPT indices, beside megatron-core's helpers and numpy."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from coredata.indices import build_gpt_indices, plan_epochs
from scripts.bench.harness import Row, compare


def rows(full: bool) -> list[Row]:
    documents = 20_000_000 if full else 1_000_000
    return [row(documents), threads_row(documents // 10)]


def threads_row(documents: int, datasets: int = 10, threads: int = 2) -> Row:
    """Ten datasets on two threads, beside ours one after the other."""
    lengths = [
        np.random.default_rng(seed).integers(1, 2000, documents, dtype=np.int32)
        for seed in range(datasets)
    ]
    exposed = np.arange(documents, dtype=np.int32)
    samples = 5 * int(lengths[0].sum(dtype=np.int64)) // (2 * 4096)

    def build(number: int):
        return build_gpt_indices(lengths[number], exposed, samples, 4096, 1234 + number)

    def together():
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(build, range(datasets)))

    def one_by_one():
        return [build(number) for number in range(datasets)]

    def same(a, b):
        for ours, other in zip(a, b, strict=True):
            np.testing.assert_array_equal(ours.document_index, other.document_index)
            np.testing.assert_array_equal(ours.sample_index, other.sample_index)
            np.testing.assert_array_equal(ours.shuffle_index, other.shuffle_index)

    what = f"{datasets} datasets of {documents:,} documents, {threads} threads, beside ours on one"
    return compare("GPT index build", together, one_by_one, same, what)


def row(documents: int, sequence_length: int = 4096, epochs: int = 3) -> Row:
    from megatron.core.datasets import helpers
    from megatron.core.datasets.gpt_dataset import _build_document_index, _build_shuffle_index

    lengths = np.random.default_rng(1).integers(1, 2000, documents, dtype=np.int32)
    exposed = np.arange(documents, dtype=np.int32)
    tokens = int(lengths.sum(dtype=np.int64))
    samples = int((epochs - 0.5) * tokens) // sequence_length
    plan = plan_epochs(tokens, samples, sequence_length)

    def ours():
        return build_gpt_indices(lengths, exposed, samples, sequence_length, 1234)

    def reference():
        tokens = int(np.sum(lengths[exposed]))
        state = np.random.RandomState(1234)
        separate = plan.final_epoch.separate
        document = _build_document_index(exposed, plan.epochs, state, separate)
        sample = helpers.build_sample_idx(
            lengths, document, sequence_length, plan.epochs, tokens, True, True
        )
        first = plan.final_epoch.samples_before if separate else len(sample) - 1
        return document, sample, _build_shuffle_index(first, len(sample) - 1, state)

    def same(a, b):
        for ours_array, reference_array in zip(
            (a.document_index, a.sample_index, a.shuffle_index), b, strict=True
        ):
            np.testing.assert_array_equal(ours_array, reference_array)

    what = f"{documents:,} documents, {plan.epochs} epochs, S {sequence_length}, one thread"
    return compare("GPT index build", ours, reference, same, what)
