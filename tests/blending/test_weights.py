"""Weights, sizes per dataset, and blends as lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.blending import get_blend_from_list, get_size_per_split_per_dataset, normalize


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50).filter(lambda w: sum(w) > 1e-9))
def test_normalize_is_one_division(weights):
    values = np.array(weights)
    assert normalize(weights) == [w / values.sum() for w in values]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([], "found none"),
        ([1, -2], r"weight number 1 of 2 is -2\.0"),
        ([0, 0, 0], "all 3 weights are 0"),
        ([1e308, 1e308], "larger than a double holds"),
    ],
)
def test_normalize_refuses(weights, message):
    with pytest.raises(ValueError, match=message):
        normalize(weights)


def test_sizes_are_rounded_up_twice():
    assert get_size_per_split_per_dataset([0.3, 0.7], [100, 0, 5]) == [[30, 0, 2], [70, 0, 4]]
    assert get_size_per_split_per_dataset([0.3, 0.7], [100, 0, 5], surplus=0.005) == [
        [31, 0, 3],
        [71, 0, 5],
    ]


def test_many_small_weights_inflate_the_blend():
    sizes = get_size_per_split_per_dataset(normalize([0.9] + [0.001] * 100), [100])
    assert sum(size for (size,) in sizes) == 190


@pytest.mark.parametrize(
    ("weights", "sizes", "surplus", "message"),
    [
        ([0.3, 0.3], [10], 0.0, "sum to 0.6, not to 1"),
        ([0.5, 0.5], [10, -3], 0.0, "split 1 asks for -3 samples"),
        ([1.0], [10], -0.1, "the surplus is -0.1; give a number from 0 up, such as 0.005"),
        ([1.0], [10], float("nan"), "the surplus is nan"),
    ],
)
def test_refused_sizes(weights, sizes, surplus, message):
    with pytest.raises(ValueError, match=message):
        get_size_per_split_per_dataset(weights, sizes, surplus)


def test_blend_lists():
    assert get_blend_from_list(None) is None
    assert get_blend_from_list(["30", " a ", "70", "b"]) == (["a", "b"], [30.0, 70.0])
    assert get_blend_from_list([" a", "b "]) == (["a", "b"], None)
    assert get_blend_from_list(["0.5"]) == (["0.5"], None)


@pytest.mark.parametrize(
    ("blend", "message"),
    [
        (["0.3", "a", "b", "0.7"], "item 2 of the blend, 'b', stands where a weight is expected"),
        (["a", "b", "1", "c"], "item 0 of the blend, 'a'"),
        ([], "empty list"),
    ],
)
def test_unclear_blend_lists(blend, message):
    with pytest.raises(ValueError, match=message):
        get_blend_from_list(blend)
