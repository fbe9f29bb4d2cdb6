"""The arithmetic of the `.idx` file, without any file of tokens."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coredata.formats.layout as layout
from coredata.formats import sequence_pointers, write_index


def test_pointers_are_the_exclusive_prefix_sum_in_bytes():
    lengths = np.array([3, 0, 5], np.int32)
    np.testing.assert_array_equal(sequence_pointers(lengths, 2), [0, 6, 6])
    assert sequence_pointers(np.empty(0, np.int32), 2).size == 0


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_sums_past_two_to_the_31(itemsize):
    lengths = np.full(5, 2**31 - 1, np.int32)
    pointers = sequence_pointers(lengths, itemsize)
    assert pointers.dtype == np.int64
    assert pointers.tolist() == [(2**31 - 1) * itemsize * k for k in range(5)]


@given(st.lists(st.integers(0, 2**31 - 1), max_size=40), st.sampled_from([1, 2, 4, 8]))
def test_pointers_match_plain_integers(lengths, itemsize):
    expected, total = [], 0
    for length in lengths:
        expected.append(total)
        total += length * itemsize
    assert sequence_pointers(np.array(lengths, np.int32), itemsize).tolist() == expected


@given(st.lists(st.integers(0, 2**31 - 1), max_size=40), st.integers(1, 7))
def test_pieces_give_the_same_pointers(lengths, chunk):
    array = np.array(lengths, np.int32)
    pieces = list(layout.pointer_chunks(array, 4, chunk))
    assert all(piece.size <= chunk for piece in pieces)
    joined = np.concatenate([np.empty(0, np.int64), *pieces])
    np.testing.assert_array_equal(joined, sequence_pointers(array, 4))


def test_the_whole_file_field_by_field(tmp_path):
    with open(tmp_path / "x.idx", "wb") as file:
        write_index(
            file,
            np.dtype(np.uint16),
            np.array([3, 0, 5], np.int32),
            np.array([0, 1, 1, 3], np.int64),
            np.array([0, -1, 7], np.int8),
        )
    expected = b"MMIDIDX\x00\x00"
    expected += struct.pack("<Q", 1) + struct.pack("<B", 8) + struct.pack("<QQ", 3, 4)
    expected += struct.pack("<3i", 3, 0, 5) + struct.pack("<3q", 0, 6, 6)
    expected += struct.pack("<4q", 0, 1, 1, 3) + struct.pack("<3b", 0, -1, 7)
    assert (tmp_path / "x.idx").read_bytes() == expected


@given(st.integers(0, 2**40), st.integers(1, 2**40), st.booleans())
def test_offsets_of_the_arrays(sequences, documents, multimodal):
    counts = layout.Counts(sequences, documents, multimodal)
    assert counts.pointers_offset == 34 + 4 * sequences
    assert counts.documents_offset == 34 + 12 * sequences
    assert counts.modes_offset == 34 + 12 * sequences + 8 * documents
    assert counts.file_size == counts.modes_offset + sequences * multimodal
