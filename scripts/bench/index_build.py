"""Building the three GPT indices, beside megatron-core's helpers and numpy."""

import numpy as np

from coredata.indices import build_gpt_indices, plan_epochs
from scripts.bench.harness import Row, compare


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
