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


OPTIONS = {
    "plain": {},
    "int32": {"output_dtype": "int32"},
    "resets": {"reset_position_ids": True, "eod_mask_loss": True},
    "apart": {"inter_document_masking": True, "eod_mask_loss": True, "segment_ids": True},
    "no extra token": {"add_extra_token_to_sequence": False},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_fields_where_tokens_lie_are_those_of_gathered_tokens(prefix, from_file, name):
    mapped = from_file(prefix, **OPTIONS[name])
    read = from_file(prefix, **OPTIONS[name], mmap_bin_files=False)
    numbers = np.append(np.arange(len(mapped)), -1)
    found, expected = mapped.get_batch(numbers), read.get_batch(numbers)
    assert list(found) == list(expected)
    for field, values in expected.items():
        np.testing.assert_array_equal(found[field], values)
        assert found[field].dtype == values.dtype
        assert found[field].flags.writeable


def test_a_batch_never_changes_with_the_next(prefix, from_file):
    dataset = from_file(prefix)
    first = dataset.get_batch(np.arange(4))
    kept = {field: values.copy() for field, values in first.items()}
    for values in dataset.get_batch(np.arange(4, 8)).values():
        values[...] = 99
    for field, values in first.items():
        np.testing.assert_array_equal(values, kept[field])


def test_a_damaged_index_is_an_error_and_not_a_crash(prefix, from_file, monkeypatch):
    dataset = from_file(prefix)
    tokens, lengths, pointers = dataset.dataset.mapped_tokens("int64")
    beyond = pointers + 10**9
    monkeypatch.setattr(
        type(dataset.dataset), "mapped_tokens", lambda _self, _dtype: (tokens, lengths, beyond)
    )
    # What does not fit is left to the reading in steps, which reads the sound index here.
    found = dataset.get_batch(np.arange(4))
    monkeypatch.undo()
    np.testing.assert_array_equal(found["tokens"], dataset.get_batch(np.arange(4))["tokens"])


def test_every_field_begins_at_a_cache_line():
    fields = {"tokens": ((3, 5), "int64"), "loss_mask": ((3, 5), "float32"), "none": ((0,), "bool")}
    kept = [allocate(fields) for _ in range(20)]  # kept, so that each is another block
    for batch in kept:
        assert [values.ctypes.data % 64 for values in batch.values()] == [0, 0, 0]
        assert {name: (values.shape, values.dtype.name) for name, values in batch.items()} == fields
        for values in batch.values():
            values[...] = 1  # each has room, within its own block
