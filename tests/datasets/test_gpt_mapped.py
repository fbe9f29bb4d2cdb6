"""Where the tokens of a mapped file are said to lie is checked before they are touched."""

import numpy as np
import pytest

from coredata.datasets.gpt_mapped import read_samples

LENGTHS = np.array([5, 6], np.int32)
TOKENS = np.arange(1, 12, dtype=np.uint16)


def read(pointers, tokens=TOKENS):
    """Two samples of 4 tokens out of two sequences; the table and what was written."""
    out = [np.full((2, 4), -7, kind) for kind in (np.int64, np.int64, np.float32, np.int64)]
    rows = np.array([[0, 0], [0, 4], [1, 3]], np.int32)
    arrays = [
        np.arange(2, dtype=np.uint32),
        rows,
        np.arange(2, dtype=np.int32),
        LENGTHS,
        np.asarray(pointers, np.int64),
        tokens,
    ]
    for array in arrays:
        array.flags.writeable = False
    return read_samples(np.arange(2), *arrays, 1, 99, True, *out), out


def test_pointers_that_lie_in_the_file():
    table, (tokens, labels, loss_mask, position_ids) = read([0, 10])
    assert table[:3].tolist() == [0, 1, 3]
    assert tokens.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert labels.tolist() == [[2, 3, 4, 5], [6, 7, 8, 9]]
    assert (loss_mask == 1).all()
    assert position_ids.tolist() == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize(
    "pointers",
    [
        [-2, 10],
        [0, -2],
        [0, -(2**62)],
        [0, 11],  # in the middle of a token
        [1, 10],
        [0, 16],  # the second span of the second sample would leave the file
        [14, 10],
        [0, 22],
        [0, 2**62],
    ],
)
def test_pointers_that_do_not(pointers):
    table, out = read(pointers)
    assert table.size == 0
    assert all((values == -7).all() for values in out)


def test_a_sequence_without_a_pointer():
    whole = np.array([0, 10])  # what lies beyond the end would do
    table, _ = read(whole[:1])
    assert table.size == 0
