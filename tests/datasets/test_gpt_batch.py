"""Gathering rows of tokens, and the memory of a batch."""

import numpy as np
import pytest

from coredata.datasets import ArraySource
from coredata.datasets.batch_memory import allocate
from coredata.datasets.gpt_batch import gather
from coredata.indices import SampleSpans

SOURCE = ArraySource(np.arange(100, 110), np.array([6, 4], np.int32))


def spans(*rows):
    """Each row: (sequence, offset, length), …"""
    columns = np.array([span for row in rows for span in row], np.int64).reshape(-1, 3).T
    splits = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return SampleSpans(*(np.ascontiguousarray(column) for column in columns), splits)


def test_rows_are_filled_side_by_side():
    wanted = spans([(1, 1, 2), (0, 0, 2)], [], [(0, 5, 1)])
    found = gather(SOURCE, wanted, 4, 1, np.dtype(np.int32))
    assert found.text.shape == (3, 5)
    assert found.text.dtype == np.int32
    assert found.row_lengths.tolist() == [4, 0, 1]
    assert found.text[0, :4].tolist() == [107, 108, 100, 101]
    assert found.text[2, 0] == 105


@pytest.mark.parametrize(("extra", "fits"), [(1, 5), (0, 4)])
def test_a_row_that_is_too_long(extra, fits):
    gather(SOURCE, spans([(0, 0, fits)]), 4, extra, np.dtype(np.int64))
    with pytest.raises(ValueError, match=f"row 1 of the batch has more than {fits} tokens"):
        gather(SOURCE, spans([(0, 0, 1)], [(0, 0, fits), (1, 0, 1)]), 4, extra, np.dtype(np.int64))


def test_a_span_that_the_source_lacks():
    with pytest.raises(ValueError, match="array: span 1 asks for 5 tokens from offset 0"):
        gather(SOURCE, spans([(0, 0, 1)], [(1, 0, 5)]), 8, 1, np.dtype(np.int64))


def test_fields_lie_apart_in_one_block():
    fields = {
        "a": ((2, 3), "int64"),
        "b": ((5,), "bool"),
        "c": ((0, 7), "int32"),
        "d": ((1,), "u2"),
    }
    batch = allocate(fields)
    for name, (shape, dtype) in fields.items():
        assert batch[name].shape == shape
        assert batch[name].dtype == dtype
        assert batch[name].flags.c_contiguous
        assert batch[name].flags.aligned
    assert len({id(values.base) for values in batch.values()}) == 1
    for number, values in enumerate(batch.values()):
        values[...] = number % 2
    for number, values in enumerate(batch.values()):
        assert (values == number % 2).all()
