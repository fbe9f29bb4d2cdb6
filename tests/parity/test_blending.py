"""Our blends beside those of megatron-core's own helpers."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.blending import (
    build_blending_indices,
    build_exhaustive_blending_indices,
    get_blend_from_list,
    normalize,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from megatron.core.datasets import helpers_cpp, utils


def reference_blend(weights, size):
    datasets, samples = np.zeros(size, dtype=np.int16), np.zeros(size, dtype=np.int64)
    helpers_cpp.build_blending_indices(datasets, samples, weights, len(weights), size, False)
    return datasets, samples


def reference_exhaustive(sizes):
    total = sum(sizes)
    datasets, samples = np.zeros(total, dtype=np.int16), np.zeros(total, dtype=np.int64)
    helpers_cpp.build_exhaustive_blending_indices(datasets, samples, sizes, len(sizes))
    return datasets, samples


def check(ours, theirs):
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(our, their, strict=True)


@given(
    st.lists(st.floats(0, 100) | st.integers(0, 5), min_size=1, max_size=200).filter(sum),
    st.integers(0, 3000),
)
@settings(deadline=None)
def test_weighted(weights, size):
    normalized = normalize(weights)
    assert normalized == utils.normalize(weights)
    check(build_blending_indices(normalized, size), reference_blend(normalized, size))


@pytest.mark.parametrize("concentration", [0.02, 1.0, 1000.0])
@pytest.mark.parametrize("datasets", [10, 100, 1000, 10_000])
def test_dirichlet_weights(datasets, concentration):
    rng = np.random.default_rng(datasets)
    weights = normalize(rng.dirichlet(np.full(datasets, concentration)) + 1e-18)
    size = min(100_000, 100_000_000 // datasets)
    check(build_blending_indices(weights, size), reference_blend(weights, size))


@given(st.lists(st.integers(1, 200), min_size=1, max_size=80))
@settings(deadline=None)
def test_exhaustive(sizes):
    check(build_exhaustive_blending_indices(sizes), reference_exhaustive(sizes))


@given(st.lists(st.sampled_from(["a", " b ", "c/d"]) | st.just("0.5"), min_size=1, max_size=5))
def test_blend_lists(items):
    if len(items) % 2 == 0:
        items = [x for item in items for x in ("0.25", item)]
    assert get_blend_from_list(items) == utils.get_blend_from_list(items)
