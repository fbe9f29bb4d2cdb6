"""Single sequences, parts of them, and slices."""

import numpy as np
import pytest

from coredata.formats import (
    DType,
    IndexedDataset,
    IndexedDatasetError,
    IndexSizeError,
    MissingFileError,
    SequenceLengthError,
    SequencePointerError,
)

FLAT = [[1, 2, 3], [], [4], [5, 6], [7, 8, 9, 10]]
MODES = [3, 0, -1, 127, 0]


@pytest.fixture(params=["mapped", "positional"])
def mmap(request):
    return request.param == "mapped"


@pytest.fixture
def dataset(prefix, mmap):
    return IndexedDataset(prefix, mmap=mmap)


def lists(arrays):
    return [array.tolist() for array in arrays]


def test_sequences_by_number(dataset):
    assert len(dataset) == 5
    assert lists(dataset[i] for i in range(5)) == FLAT
    assert lists(dataset[i] for i in range(-5, 0)) == FLAT
    assert dataset[np.int32(3)].tolist() == [5, 6]
    assert {dataset[i].dtype for i in range(5)} == {np.dtype(np.uint16)}


def test_it_is_a_sequence_for_iteration(dataset):
    assert lists(dataset) == FLAT


@pytest.mark.parametrize("index", [5, -6, 2**40])
def test_numbers_out_of_range(dataset, index):
    with pytest.raises(IndexError, match=f"asked for sequence {index}, but there are 5 sequences"):
        dataset[index]
    with pytest.raises(IndexError, match="there are 5 sequences"):
        dataset.get(index)


@pytest.mark.parametrize("index", [1.0, "1", None])
def test_other_things_are_no_numbers(dataset, index):
    with pytest.raises(TypeError):
        dataset[index]


def test_parts(dataset):
    assert dataset.get(4).tolist() == [7, 8, 9, 10]
    assert dataset.get(4, 1).tolist() == [8, 9, 10]
    assert dataset.get(4, 1, 2).tolist() == [8, 9]
    assert dataset.get(-1, offset=3, length=1).tolist() == [10]
    assert dataset.get(4, 4).tolist() == []
    assert dataset.get(1, 0, 0).tolist() == []
    assert dataset.get(2, np.int64(0), np.int32(1)).tolist() == [4]


@pytest.mark.parametrize(
    ("index", "offset", "length"),
    [(0, 0, 4), (0, 4, None), (0, -1, 1), (0, 3, 1), (0, 1, -1), (1, 0, 1), (0, 2, 2**40)],
)
def test_a_part_never_leaves_its_sequence(dataset, index, offset, length):
    text = rf"from token {offset} of sequence {index}, which has {len(FLAT[index])} tokens"
    with pytest.raises(ValueError, match=text):
        dataset.get(index, offset, length)


@pytest.mark.parametrize("start", [None, 0, 1, 3, 5, 9, -2, -9])
@pytest.mark.parametrize("stop", [None, 0, 2, 5, 9, -1, -9])
def test_slices(dataset, start, stop):
    assert lists(dataset[start:stop]) == FLAT[start:stop]
    assert lists(dataset[start:stop:1]) == FLAT[start:stop]


@pytest.mark.parametrize("step", [2, -1, 0])
def test_slices_have_no_step(dataset, step):
    with pytest.raises(ValueError, match="step"):
        dataset[::step]


def test_a_slice_is_one_read(prefix, mmap, monkeypatch):
    dataset = IndexedDataset(prefix, mmap=mmap)
    reads = []
    kind = type(dataset.bin_reader)
    original = kind.read
    monkeypatch.setattr(
        kind, "read", lambda self, *range_: reads.append(range_) or original(self, *range_)
    )
    assert lists(dataset[0:5]) == FLAT
    assert reads == [(0, 20)]


@pytest.mark.parametrize("dtype", [member.name for member in DType])
def test_every_dtype(write, mmap, dtype):
    dataset = IndexedDataset(write([[[1, 2], []], [[3]]], dtype), mmap=mmap)
    assert dataset.dtype == dtype
    assert lists(dataset[:]) == [[1, 2], [], [3]]
    assert {array.dtype for array in dataset[:]} == {np.dtype(dtype)}


def test_largest_values_of_each_dtype(write, mmap):
    for dtype in (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64):
        limits = np.iinfo(dtype)
        dataset = IndexedDataset(write([[[limits.min, limits.max]]], dtype), mmap=mmap)
        assert dataset[0].tolist() == [limits.min, limits.max]


def test_modes(write, documents, mmap):
    dataset = IndexedDataset(write(documents, modes=MODES), multimodal=True, mmap=mmap)
    assert dataset.sequence_modes.tolist() == MODES
    tokens, mode = dataset[3]
    assert (tokens.tolist(), mode) == ([5, 6], 127)
    assert mode.dtype == np.int8
    tokens, mode = dataset.get(4, 1, 2)
    assert (tokens.tolist(), mode) == ([8, 9], 0)
    sequences, modes = dataset[1:4]
    assert (lists(sequences), modes.tolist()) == (FLAT[1:4], MODES[1:4])
    sequences, modes = dataset[3:2]
    assert (sequences, modes.tolist()) == ([], [])


def test_without_modes(dataset):
    assert dataset.sequence_modes is None
    assert not dataset.multimodal


def test_index_arrays_are_views_of_the_file(dataset):
    assert dataset.sequence_lengths.tolist() == [3, 0, 1, 2, 4]
    assert dataset.sequence_pointers.tolist() == [0, 6, 6, 8, 12]
    assert dataset.document_indices.tolist() == [0, 2, 2, 3, 5]
    for array in (dataset.sequence_lengths, dataset.sequence_pointers, dataset.document_indices):
        assert array.base is not None
        assert not array.flags.writeable
        assert not array.flags.owndata
    assert dataset.sequence_lengths is dataset.sequence_lengths


def test_tokens_of_a_mapped_file_are_views(prefix):
    dataset = IndexedDataset(prefix)
    whole = dataset.bin_reader.view()
    assert np.shares_memory(dataset[0], whole)
    assert all(np.shares_memory(array, whole) for array in dataset[2:5])
    assert not dataset[0].flags.writeable


def test_arrays_outlive_the_dataset(prefix, mmap):
    dataset = IndexedDataset(prefix, mmap=mmap)
    tokens, lengths = dataset[4], dataset.sequence_lengths
    dataset.close()
    assert dataset[0].tolist() == [1, 2, 3]
    del dataset
    assert tokens.tolist() == [7, 8, 9, 10]
    assert lengths.tolist() == [3, 0, 1, 2, 4]


def test_a_file_without_sequences(write, mmap):
    dataset = IndexedDataset(write([]), mmap=mmap)
    assert len(dataset) == 0
    assert dataset[:] == []
    assert dataset.document_indices.tolist() == [0]
    assert dataset.identity()["tokens"] == 0
    with pytest.raises(IndexError, match="there are 0 sequences"):
        dataset[0]


def test_documents_without_sequences_only(write, mmap):
    dataset = IndexedDataset(write([[], []]), mmap=mmap)
    assert dataset.identity() == {
        "name": "corpus",
        "sequences": 0,
        "documents": 2,
        "tokens": 0,
        "dtype": "uint16",
    }


def test_identity_does_not_depend_on_the_place(write, documents, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    here, there = write(documents), write(documents, name="elsewhere/corpus")
    identity = dict(IndexedDataset(here).identity())
    assert identity == dict(IndexedDataset(there, mmap=False).identity())
    assert identity == {
        "name": "corpus",
        "sequences": 5,
        "documents": 4,
        "tokens": 10,
        "dtype": "uint16",
    }


def test_existence(prefix, tmp_path):
    assert IndexedDataset.exists(prefix)
    assert not IndexedDataset.exists(tmp_path / "other")
    (tmp_path / "corpus.bin").unlink()
    assert not IndexedDataset.exists(prefix)


def test_paths_may_be_path_objects(prefix, tmp_path):
    assert IndexedDataset(tmp_path / "corpus").path_prefix == prefix
    assert repr(IndexedDataset(prefix)) == f"IndexedDataset({prefix!r})"


def test_known_counts_make_the_header_unnecessary(prefix, mmap, tmp_path):
    content = bytearray((tmp_path / "corpus.idx").read_bytes())
    content[:34] = bytes(34)
    (tmp_path / "corpus.idx").write_bytes(content)
    dataset = IndexedDataset(prefix, mmap=mmap, sequences_per_dataset=[5, 5], dtype_code=8)
    assert lists(dataset[:]) == FLAT
    assert dataset.document_indices.tolist() == [0, 2, 2, 3, 5]


def test_wrong_known_counts(prefix):
    with pytest.raises(IndexSizeError, match="4 sequences and 5 document entries take 122"):
        IndexedDataset(prefix, sequences_per_dataset=[4, 5], dtype_code=8)
    with pytest.raises(ValueError, match=r"needs dtype_code too.*dtype_code=8 for uint16"):
        IndexedDataset(prefix, sequences_per_dataset=[5, 5])
    with pytest.raises(ValueError, match=r"the sequence count and the document count.*\[1000, 10"):
        IndexedDataset(prefix, sequences_per_dataset=[5], dtype_code=8)
    with pytest.raises(IndexedDatasetError, match="no dtype code 77"):
        IndexedDataset(prefix, sequences_per_dataset=[5, 5], dtype_code=77)


def test_fast_loading_opens_nothing_until_it_is_used(write, documents, tmp_path):
    dataset = IndexedDataset(tmp_path / "corpus", fast_cache_load=True)
    with pytest.raises(MissingFileError, match="do not exist"):
        len(dataset)
    write(documents)
    assert lists(dataset[:]) == FLAT


def rewrite_array(path, offset, values):
    content = bytearray(path.read_bytes())
    content[offset : offset + values.nbytes] = values.tobytes()
    path.write_bytes(content)


def test_pointers_are_trusted_not_the_order(prefix, mmap, tmp_path):
    # Sequence 0 at the end of the file, sequence 3 and 4 swapped.
    rewrite_array(tmp_path / "corpus.idx", 34 + 20, np.array([14, 6, 0, 16, 2], np.int64))
    dataset = IndexedDataset(prefix, mmap=mmap)
    expected = [[8, 9, 10], [], [1], [9, 10], [2, 3, 4, 5]]
    assert lists(dataset[i] for i in range(5)) == expected
    assert lists(dataset[:]) == expected
    assert lists(dataset[2:4]) == expected[2:4]


def test_pointers_in_the_middle_of_a_token(prefix, mmap, tmp_path):
    rewrite_array(tmp_path / "corpus.idx", 34 + 20, np.array([1, 7, 7, 9, 12], np.int64))
    dataset = IndexedDataset(prefix, mmap=mmap)
    assert dataset[0].tolist() == [2 << 8, 3 << 8, 4 << 8]
    assert lists(dataset[0:3]) == [[2 << 8, 3 << 8, 4 << 8], [], [5 << 8]]


@pytest.mark.parametrize("pointer", [-2, 15, 20, 2**62])
def test_a_pointer_outside_the_file_is_an_error_when_read(prefix, mmap, tmp_path, pointer):
    rewrite_array(tmp_path / "corpus.idx", 34 + 20, np.array([pointer], np.int64))
    dataset = IndexedDataset(prefix, mmap=mmap)
    text = rf"corpus.idx: sequence 0 of 3 uint16 tokens is said to begin at byte {pointer}, which"
    with pytest.raises(SequencePointerError, match=text):
        dataset[0]
    with pytest.raises(SequencePointerError, match=text):
        dataset[:]
    assert dataset[4].tolist() == [7, 8, 9, 10]


def test_a_negative_length_is_an_error_when_read(prefix, mmap, tmp_path):
    rewrite_array(tmp_path / "corpus.idx", 34, np.array([-3], np.int32))
    dataset = IndexedDataset(prefix, mmap=mmap)
    with pytest.raises(ValueError, match="sequence 0, which has -3 tokens"):
        dataset[0]
    with pytest.raises(SequenceLengthError, match=r"corpus\.idx: a sequence from 0 to 5 has a neg"):
        dataset[:]
