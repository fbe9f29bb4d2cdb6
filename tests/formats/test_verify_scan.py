"""The compiled passes of a check, held to plain loops over the same arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.formats import DocumentIndexError, SequencePointerError, TokenError
from coredata.formats.verify import find_pair_faults
from coredata.formats.verify_scan import (
    NEGATIVE_LENGTH,
    SOUND,
    WRONG_POINTER,
    TokenScan,
    first_bad_sequence,
    first_descent,
    largest_id,
    scan_tokens,
)
from coredata.storage import open_reader


def bad_sequence(lengths, pointers, itemsize, expected):
    for number, (length, pointer) in enumerate(zip(lengths, pointers, strict=True)):
        if length < 0:
            return NEGATIVE_LENGTH, number, expected
        if pointer != expected:
            return WRONG_POINTER, number, expected
        expected += length * itemsize
    return SOUND, len(lengths), expected


@given(
    st.lists(st.integers(-1, 5), max_size=6),
    st.sampled_from([1, 2, 4]),
    st.integers(-1, 6),
    st.integers(0, 9),
)
def test_sequences_equal_a_loop(lengths, itemsize, moved, start):
    pointers = start + np.cumsum([0, *lengths])[:-1] * itemsize
    if 0 <= moved < len(lengths):
        pointers[moved] += 1
    arrays = np.array(lengths, np.int32), np.array(pointers, np.int64)
    found = first_bad_sequence(*arrays, np.int64(itemsize), np.int64(start))
    assert found == bad_sequence(lengths, pointers.tolist(), itemsize, start)


@given(st.lists(st.integers(0, 4), max_size=6))
def test_descents_equal_numpy(documents):
    steps = np.flatnonzero(np.diff(documents) < 0) if documents else []
    expected = int(steps[0]) if len(steps) else -1
    assert first_descent(np.array(documents, np.int64)) == expected


@given(
    st.lists(st.integers(-3, 12), max_size=30),
    st.sampled_from([np.uint8, np.uint16, np.int32, np.int64]),
    st.integers(1, 12),
    st.integers(1, 40),
)
def test_tokens_equal_numpy(tmp_path_factory, values, dtype, limit, block):
    ids = np.array(values)
    ids = np.abs(ids).astype(dtype) if np.dtype(dtype).kind == "u" else ids.astype(dtype)
    path = tmp_path_factory.mktemp("scan") / "x.bin"
    path.write_bytes(ids.tobytes())
    seen = []
    found = scan_tokens(open_reader(str(path), mmap=False), ids.dtype, limit, seen.append, block)
    wrong = (ids < 0) | (ids >= limit)
    expected = TokenScan(
        max([-1, *ids.tolist()]),
        int(wrong.sum()),
        int(np.argmax(wrong)) if wrong.any() else -1,
    )
    assert found == expected
    assert sum(seen) == ids.nbytes


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_the_largest_of_read_only_ids(dtype):
    ids = np.array([3, 250, 7], dtype)
    ids.flags.writeable = False
    assert largest_id(ids) == 250


def test_every_kind_of_fault_is_told(write, tmp_path):
    prefix = write([[[1, 2]], [[3]], [[40]]])
    with open(tmp_path / "corpus.idx", "r+b") as file:
        file.seek(34 + 12 + 8)
        file.write(np.int64(7).tobytes())
        file.seek(34 + 12 + 24 + 8)
        file.write(np.array([2, 1], np.int64).tobytes())
    found = find_pair_faults(prefix, 10)
    kinds = [type(fault) for fault in found.faults]
    assert kinds == [SequencePointerError, DocumentIndexError, TokenError]
    assert (found.facts.tokens, found.facts.documents) == (4, 3)
    assert [type(f) for f in find_pair_faults(prefix, 10, most=1).faults] == kinds[:1]


def test_how_many_ids_are_outside(write):
    prefix = write([[[1, 40]], [[50, 2]]])
    (fault,) = find_pair_faults(prefix, 10).faults
    assert str(fault).endswith("or is damaged. 2 ids of the file are outside it")


def test_floating_point_values_are_no_ids(write):
    (fault,) = find_pair_faults(write([[[1.5]]], np.float32), 10).faults
    assert "the values are float32, which are no ids of a vocabulary" in str(fault)
