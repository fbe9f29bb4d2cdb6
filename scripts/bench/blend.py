"""The weighted blending index, beside megatron-core's helper."""

import numpy as np

from coredata.blending import build_blending_indices
from scripts.bench.harness import Row, compare


def rows(full: bool) -> list[Row]:
    samples = 1_000_000 if full else 100_000
    return [row(10, samples), row(100, samples), row(1_000, samples), row(10_000, samples // 4)]


def row(datasets: int, samples: int) -> Row:
    from megatron.core.datasets import helpers

    weights = np.random.default_rng(2).dirichlet(np.ones(datasets)).tolist()

    def ours():
        return build_blending_indices(weights, samples)

    def reference():
        dataset_index = np.zeros(samples, np.int16)
        sample_index = np.zeros(samples, np.int64)
        helpers.build_blending_indices(
            dataset_index, sample_index, weights, datasets, samples, False
        )
        return dataset_index, sample_index

    def same(a, b):
        for ours_array, reference_array in zip(a, b, strict=True):
            np.testing.assert_array_equal(ours_array, reference_array)

    what = f"{datasets:,} datasets, {samples:,} samples"
    return compare("blending index", ours, reference, same, what)
