"""Sample numbers as users give them."""

import numpy as np
import pytest

from coredata.datasets.sample_numbers import sample_number, sample_numbers


@pytest.mark.parametrize(
    "given", [[0, 4], np.array([0, 4], np.int32), np.array([0, 4], np.uint64), (0, 4)]
)
def test_any_integers(given):
    numbers = sample_numbers(given, 5, "x")
    assert numbers.samples.dtype == np.int64
    assert numbers.samples.tolist() == [0, 4]
    assert numbers.padding is None


def test_padding_is_told_apart():
    numbers = sample_numbers(np.array([3, -1, 2]), 5, "x")
    assert numbers.samples.tolist() == [3, 0, 2]
    assert numbers.padding.tolist() == [False, True, False]


def test_none_at_all():
    assert len(sample_numbers([], 5, "x").samples) == 0
    assert len(sample_numbers([], 0, "x").samples) == 0


@pytest.mark.parametrize("wrong", [5, -2, 2**62, -(2**62)])
def test_out_of_range(wrong):
    with pytest.raises(IndexError, match=f"sample {wrong} was asked of x, which has 5, numbered 0"):
        sample_numbers(np.array([1, wrong]), 5, "x")


@pytest.mark.parametrize("index", [0, -1, 7])
def test_nothing_to_give(index):
    with pytest.raises(IndexError, match=f"sample {index} was asked of x, which has no samples"):
        sample_numbers(np.array([index]), 0, "x")


@pytest.mark.parametrize("given", [[0.5], [True], ["a"]])
def test_no_integers(given):
    with pytest.raises(TypeError, match=r"indices: got values of type .* need integers"):
        sample_numbers(np.array(given), 5, "x")


def test_one_dimension():
    with pytest.raises(ValueError, match=r"indices: got an array of shape \(1, 2\)"):
        sample_numbers(np.array([[1, 2]]), 5, "x")


@pytest.mark.parametrize("index", [None, -1])
def test_one_padding(index):
    assert sample_number(index, 5, "x").padding.tolist() == [True]


@pytest.mark.parametrize("index", [3, np.int32(3), np.uint8(3)])
def test_one_number(index):
    assert sample_number(index, 5, "x").samples.tolist() == [3]


@pytest.mark.parametrize("index", [True, 1.0, "1", [1]])
def test_one_that_is_no_number(index):
    with pytest.raises(TypeError, match=r"sample number: got .* need an integer from 0 to 4"):
        sample_number(index, 5, "x")
