import numpy as np
import pytest

from coredata.testing import assert_same_array, assert_same_batch, assert_same_bytes


def test_equal_arrays_pass():
    assert_same_array(np.arange(3), np.arange(3), "x")
    assert_same_array(np.array([np.nan]), np.array([np.nan]), "x")
    assert_same_array(5, 5, "x")


@pytest.mark.parametrize(
    ("actual", "expected", "match"),
    [
        (np.zeros(2, np.int32), np.zeros(2, np.int64), "^x: dtype is int32, expected int64"),
        (np.zeros((2, 1)), np.zeros(2), r"^x: shape is \(2, 1\), expected \(2,\)"),
        (
            np.array([[1, 2], [3, 5]]),
            np.array([[1, 2], [3, 4]]),
            r"^x\[1, 1\]: is 5, expected 4 \(1 of 4 differ\)",
        ),
        (np.array([np.nan, 1.0]), np.array([np.nan, 2.0]), r"x\[1\]: is 1.0, expected 2.0 \(1 of"),
        (4, 5, "^x: is 4, expected 5"),
    ],
)
def test_the_first_difference_is_named(actual, expected, match):
    with pytest.raises(AssertionError, match=match):
        assert_same_array(actual, expected, "x")


def test_dtypes_may_be_left_out():
    assert_same_array(np.zeros(2, np.int32), np.zeros(2, np.int64), "x", check_dtype=False)


def test_batches():
    batch = {"tokens": np.arange(3), "labels": np.arange(3)}
    assert_same_batch(batch, dict(reversed(batch.items())), "b")
    with pytest.raises(
        AssertionError, match=r"b: fields missing \['labels'\], fields not expected \['x'\]"
    ):
        assert_same_batch({"tokens": np.arange(3), "x": np.arange(3)}, batch, "b")
    with pytest.raises(AssertionError, match=r"b, field tokens\[0\]: is 7, expected 0"):
        assert_same_batch({**batch, "tokens": np.array([7, 1, 2])}, batch, "b")


@pytest.mark.parametrize(
    ("actual", "match"),
    [
        (b"abX", "f: byte 2 is 0x58, expected 0x63"),
        (b"ab", "f: 2 bytes, expected 3; the rest is equal"),
        (b"abcd", "f: 4 bytes, expected 3"),
    ],
)
def test_bytes(actual, match):
    assert_same_bytes(b"abc", b"abc", "f")
    with pytest.raises(AssertionError, match=match):
        assert_same_bytes(actual, b"abc", "f")
