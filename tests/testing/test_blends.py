import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.blending import build_blending_indices, normalize
from coredata.testing import assert_blend_sequential, assert_blend_shares
from coredata.testing.strategies import blend_weights


@settings(max_examples=60, deadline=None)
@given(weights=blend_weights(), size=st.integers(0, 300))
def test_every_blend_keeps_its_shares(weights, size):
    datasets, samples = build_blending_indices(normalize(weights), size)
    assert_blend_shares(datasets, weights)
    assert_blend_sequential(datasets, samples)


def test_many_datasets_keep_their_shares():
    weights = np.random.default_rng(0).pareto(1.0, 300) + 1e-6
    datasets, _ = build_blending_indices(normalize(weights.tolist()), 20000)
    assert_blend_shares(datasets, weights.tolist())


@pytest.mark.parametrize(
    ("datasets", "match"),
    [
        (
            [0, 0, 0, 0, 1, 1, 1, 1],
            "ahead of its share: of the first 3 samples it has 3, its share is 0.5, which is 1.50",
        ),
        ([0, 1] * 4 + [0] * 3, "ahead of its share: of the first 11 samples it has 7"),
        ([0, 2], "draws from dataset 2, but there are 2"),
    ],
)
def test_a_blend_that_does_not_keep_its_shares(datasets, match):
    with pytest.raises(AssertionError, match=match):
        assert_blend_shares(np.array(datasets), [1.0, 1.0])


def test_a_dataset_that_falls_behind():
    datasets = np.array([0, 1] * 3)
    with pytest.raises(AssertionError, match="behind its share: of the first 6 samples it has 0"):
        assert_blend_shares(datasets, [0.45, 0.45, 0.1], tolerance=0.5)
    late = np.array([0, 1, 0, 1, 0, 2])
    with pytest.raises(
        AssertionError, match=r"of the first 5 samples it has 0, its share is 0\.1,"
    ):
        assert_blend_shares(late, [0.55, 0.35, 0.1], tolerance=0.45)


def test_samples_out_of_order():
    datasets = np.array([0, 1, 0])
    assert_blend_sequential(datasets, np.array([0, 0, 1]))
    with pytest.raises(
        AssertionError, match="sample 2 is number 2 of dataset 0, expected its number 1"
    ):
        assert_blend_sequential(datasets, np.array([0, 0, 2]))
