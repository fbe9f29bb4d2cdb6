"""The greedy rule against its slow, readable twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.blending import (
    build_blending_indices,
    build_exhaustive_blending_indices,
    normalize,
)


def slow_blend(weights, size, limits=None):
    """The rule as it is stated: every dataset is asked at every step."""
    weights = np.asarray(weights, dtype=np.float64)
    drawn = np.zeros(len(weights))
    open_ = np.ones(len(weights), dtype=bool) if limits is None else np.asarray(limits) > 0
    datasets, samples = [], []
    for t in range(size):
        error = np.where(open_, weights * float(max(t, 1)) - drawn, -np.inf)
        winner = int(np.argmax(error))  # the first of equals
        datasets.append(winner)
        samples.append(int(drawn[winner]))
        drawn[winner] += 1
        if limits is not None and drawn[winner] == limits[winner]:
            open_[winner] = False
    return np.array(datasets, dtype=np.int64), np.array(samples, dtype=np.int64)


def check(weights, size):
    datasets, samples = build_blending_indices(weights, size)
    slow_datasets, slow_samples = slow_blend(weights, size)
    np.testing.assert_array_equal(datasets, slow_datasets)
    np.testing.assert_array_equal(samples, slow_samples)
    assert datasets.dtype == np.int16
    assert samples.dtype == np.int64


def positive(weights):
    return sum(weights) > 0


few_values = st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 0.1]), min_size=1, max_size=60)
any_values = st.lists(st.floats(0, 1e6), min_size=1, max_size=60)
tiny_values = st.lists(st.floats(0, 1e-300) | st.sampled_from([0.7, 5e-324]), min_size=1)


@given((few_values | any_values | tiny_values).filter(positive), st.integers(0, 300))
@settings(deadline=None)
def test_any_weights(weights, size):
    check(normalize(weights), size)


def random_weights(kind, datasets, rng):
    if kind == "dirichlet":
        return rng.dirichlet(np.ones(datasets))
    if kind == "skewed":
        return rng.dirichlet(np.full(datasets, 0.05)) + 1e-15
    if kind == "zipf":
        return 1 / np.arange(1, datasets + 1)
    if kind == "nearly equal":
        return 1 + 1e-9 * rng.random(datasets)
    if kind == "few distinct":
        return rng.integers(0, 7, datasets) + 0.0
    return np.ones(datasets)


KINDS = ["dirichlet", "skewed", "zipf", "nearly equal", "few distinct", "equal"]


@given(st.sampled_from(KINDS), st.integers(1, 400), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_many_datasets(kind, datasets, seed):
    weights = random_weights(kind, datasets, np.random.default_rng(seed))
    if weights.sum() > 0:
        check(normalize(weights), 1500)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("datasets", [300, 2500])
def test_hundreds_and_thousands_of_datasets(kind, datasets):
    weights = random_weights(kind, datasets, np.random.default_rng(datasets))
    check(normalize(weights), 6000)


def test_more_datasets_than_int16_holds():
    weights = normalize(np.random.default_rng(5).random(40_000))
    datasets, samples = build_blending_indices(weights, 60_000)
    assert datasets.dtype == np.int32
    assert datasets.max() > np.iinfo(np.int16).max
    slow_datasets, slow_samples = slow_blend(weights, 500)
    np.testing.assert_array_equal(datasets[:500], slow_datasets)
    np.testing.assert_array_equal(samples[:500], slow_samples)
    drawn = np.bincount(datasets, minlength=40_000)
    assert np.all(np.abs(drawn - np.array(weights) * 60_000) < 2)
    assert build_blending_indices(normalize([1.0] * 32_767), 1)[0].dtype == np.int16
    assert build_blending_indices(normalize([1.0] * 32_768), 1)[0].dtype == np.int32


def test_a_dataset_too_small_to_be_drawn():
    weights = normalize([2**0.5, 1e-12, 3**0.5, 5**0.5])
    datasets, _ = build_blending_indices(weights, 10_000)
    assert set(datasets.tolist()) == {0, 2, 3}
    check(weights, 10_000)
    # Even a tiny share is drawn where the others are exactly on theirs.
    assert build_blending_indices([0.5, 1e-12, 0.5], 3)[0].tolist() == [0, 2, 1]


def test_a_longer_blend_starts_as_a_shorter_one():
    weights = normalize(np.random.default_rng(0).random(200))
    short, _ = build_blending_indices(weights, 777)
    long, _ = build_blending_indices(weights, 5000)
    np.testing.assert_array_equal(long[:777], short)


even_sizes = st.lists(st.sampled_from([0, 2, 4, 6]), min_size=1, max_size=6)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=300) | even_sizes)
@settings(deadline=None)
def test_exhaustive(sizes):
    datasets, samples = build_exhaustive_blending_indices(sizes)
    total = sum(sizes)
    slow_datasets, slow_samples = slow_blend(np.array(sizes) / max(total, 1), total, sizes)
    np.testing.assert_array_equal(datasets, slow_datasets)
    np.testing.assert_array_equal(samples, slow_samples)
    np.testing.assert_array_equal(np.bincount(datasets, minlength=len(sizes)), sizes)


def test_exhaustive_over_large_unequal_sizes():
    sizes = np.random.default_rng(3).integers(0, 60, 700)
    datasets, samples = build_exhaustive_blending_indices(sizes.tolist())
    total = int(sizes.sum())
    slow_datasets, slow_samples = slow_blend(sizes / total, total, sizes)
    np.testing.assert_array_equal(datasets, slow_datasets)
    np.testing.assert_array_equal(samples, slow_samples)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([], "one weight per dataset; found none"),
        ([0.5, -0.1, 0.6], r"weight number 1 of 3 is -0\.1; .* from 0 up"),
        ([0.5, float("nan")], "weight number 1 of 2 is nan"),
        ([float("inf"), 0.5], "weight number 0 of 2 is inf"),
        ([0.0, 0.0], "all 2 weights are 0"),
        ([3.0, 7.0], r"sum to 10\.0, not to 1; pass normalize\(weights\)"),
    ],
)
def test_refused_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        build_blending_indices(weights, 10)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], "at least one dataset"),
        ([3, -1], "size number 1 of 2 is -1; sizes are whole numbers from 0 up"),
        ([2.5], r"size number 0 of 1 is 2\.5"),
    ],
)
def test_refused_sizes(sizes, message):
    with pytest.raises(ValueError, match=message):
        build_exhaustive_blending_indices(sizes)


def test_refused_length():
    with pytest.raises(ValueError, match="asked for -1 samples; ask for 0 or more"):
        build_blending_indices([1.0], -1)
