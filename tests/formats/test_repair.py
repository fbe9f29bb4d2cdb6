"""Indices that are mended, and those left alone because what they should say is unknown."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.formats import IndexedDataset, IndexedDatasetBuilder, MissingFileError, verify_indexed
from coredata.formats.repair import NotRepairableError, repair_index
from coredata.formats.repair_scan import ends_in

EOD = 9
ONE_EACH = [[[1, 2, EOD]], [[EOD]], [[3, EOD]], [[4, 5, 6, EOD]]]
SEVERAL = [[[1, 2], [3, EOD]], [[4, EOD]], [[5], [6], [7, EOD]]]


def contents(prefix):
    dataset = IndexedDataset(prefix)
    return dataset.document_indices.tolist(), [dataset[i].tolist() for i in range(len(dataset))]


def cut_list(prefix, entries):
    """Let the document list have only so many entries, as the header says too."""
    with open(f"{prefix}.idx", "rb") as file:
        data = bytearray(file.read())
    total = struct.unpack_from("<Q", data, 26)[0]
    struct.pack_into("<Q", data, 26, entries)
    with open(f"{prefix}.idx", "wb") as file:
        file.write(data[: len(data) - 8 * (total - entries)])


@pytest.mark.parametrize(("documents", "eod"), [(ONE_EACH, None), (ONE_EACH, EOD), (SEVERAL, EOD)])
@pytest.mark.parametrize("entries", [2, 3])
def test_a_short_document_list(write, tmp_path, documents, eod, entries):
    prefix = write(documents)
    whole = (tmp_path / "corpus.idx").read_bytes()
    cut_list(prefix, entries)
    broken = (tmp_path / "corpus.idx").read_bytes()
    repaired = repair_index(prefix, eod=eod)
    assert (tmp_path / "corpus.idx").read_bytes() == whole
    assert repaired.kept == f"{prefix}.idx.before-repair"
    assert (tmp_path / "corpus.idx.before-repair").read_bytes() == broken
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "corpus.bin",
        "corpus.idx",
        "corpus.idx.before-repair",
    ]


@pytest.mark.parametrize("kept", range(34 + 4 * 4, 34 + 4 * 12 + 8 * 5))
def test_an_index_cut_anywhere_after_its_lengths(write, tmp_path, kept):
    prefix = write(ONE_EACH)
    whole = (tmp_path / "corpus.idx").read_bytes()
    (tmp_path / "corpus.idx").write_bytes(whole[:kept])
    repair_index(prefix, eod=EOD)
    assert (tmp_path / "corpus.idx").read_bytes() == whole


def test_wrong_pointers_and_modes(write, tmp_path):
    prefix = write(ONE_EACH, modes=[0, 1, 2, 3])
    whole = (tmp_path / "corpus.idx").read_bytes()
    for number in (1, 2):
        damaged = bytearray(whole)
        struct.pack_into("<q", damaged, 34 + 16 + 8, 77)
        (tmp_path / "corpus.idx").write_bytes(damaged)
        kept = repair_index(prefix).kept
        assert kept.endswith(".before-repair" if number == 1 else ".before-repair-2")
        assert (tmp_path / "corpus.idx").read_bytes() == whole


def test_a_single_open_sequence_makes_a_document(write, tmp_path):
    prefix = write(SEVERAL[:2])
    whole = (tmp_path / "corpus.idx").read_bytes()
    cut_list(prefix, 2)
    repair_index(prefix)
    assert (tmp_path / "corpus.idx").read_bytes() == whole


def test_unknown_boundaries_are_not_guessed(write, tmp_path):
    prefix = write(SEVERAL)
    cut_list(prefix, 2)
    before = (tmp_path / "corpus.idx").read_bytes()
    text = r"corpus\.idx: the document list ends at sequence 2 of 6, and how the 4 .* give --eod"
    with pytest.raises(NotRepairableError, match=text):
        repair_index(prefix)
    with pytest.raises(NotRepairableError, match=r"sequence 5, the last, does not end in the id 8"):
        repair_index(prefix, eod=8)
    assert (tmp_path / "corpus.idx").read_bytes() == before


def test_a_last_document_that_is_not_complete(write, tmp_path):
    prefix = write([[[1, EOD]], [[2, EOD]], [[3, 4]]])
    cut_list(prefix, 2)
    with pytest.raises(NotRepairableError, match=r"sequence 2, the last, does not end in the id 9"):
        repair_index(prefix, eod=EOD)


def test_lost_lengths(write, tmp_path):
    prefix = write(ONE_EACH)
    whole = (tmp_path / "corpus.idx").read_bytes()
    (tmp_path / "corpus.idx").write_bytes(whole[: 34 + 15])
    with pytest.raises(NotRepairableError, match=r"ends at byte 49, among its 4 sequence lengths"):
        repair_index(prefix, eod=EOD)
    (tmp_path / "corpus.idx").write_bytes(whole + b"remnant")
    with pytest.raises(NotRepairableError, match=r"more than the 122 that its counts imply"):
        repair_index(prefix, eod=EOD)


def test_a_bin_file_of_another_size(write, tmp_path):
    prefix = write(ONE_EACH)
    with open(tmp_path / "corpus.bin", "ab") as file:
        file.write(b"xx")
    text = r"lengths add up to 20 bytes, but .*corpus\.bin has 22; one of the two is cut off"
    with pytest.raises(NotRepairableError, match=text):
        repair_index(prefix, eod=EOD)


def test_sound_missing_and_remote(write, tmp_path):
    prefix = write(ONE_EACH)
    with pytest.raises(FileExistsError, match=r"corpus\.idx is sound; there is nothing to repair"):
        repair_index(prefix)
    (tmp_path / "corpus.bin").unlink()
    with pytest.raises(MissingFileError, match=r"corpus\.bin does not exist; its tokens are lost"):
        repair_index(prefix)
    with pytest.raises(NotRepairableError, match=r"only local files are repaired; copy the pair"):
        repair_index("memory://corpus")


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.uint8])
def test_a_missing_index(write, tmp_path, dtype):
    prefix = write(ONE_EACH, dtype)
    whole = (tmp_path / "corpus.idx").read_bytes()
    (tmp_path / "corpus.idx").unlink()
    repaired = repair_index(prefix, eod=EOD, dtype=dtype, vocab_size=10)
    assert (tmp_path / "corpus.idx").read_bytes() == whole
    assert (repaired.kept, repaired.what) == (
        None,
        f"wrote 4 documents, each up to its id 9; {np.dtype(dtype).name} was taken as given, and "
        "nothing in the file speaks against it",
    )


def without_index(tmp_path, documents, dtype, checksums=False):
    """A pair whose index is lost; its prefix, and the index."""
    prefix = str(tmp_path / "x")
    with IndexedDatasetBuilder(prefix, dtype, checksums=checksums) as builder:
        for document in documents:
            builder.add_document(document, [len(document)])
        builder.finalize()
    whole = (tmp_path / "x.idx").read_bytes()
    (tmp_path / "x.idx").unlink()
    return prefix, whole


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("uint16", "uint8"),
        ("int32", "uint16"),
        ("int32", "uint8"),
        ("int64", "int32"),
        ("int64", "uint8"),
    ],
)
@pytest.mark.parametrize("vocab_size", [250, 50_257, 64_000])
def test_a_dtype_that_is_too_narrow(tmp_path, stored, given, vocab_size):
    rng = np.random.default_rng(1)
    documents = [[*rng.integers(1, vocab_size, 30).tolist(), 0] for _ in range(200)]
    prefix, whole = without_index(tmp_path, documents, stored)
    bytes_of_one = np.dtype(stored).itemsize
    text = rf"x\.bin: read as {given}, every .* as where an id takes {bytes_of_one} bytes; give the"
    with pytest.raises(NotRepairableError, match=text):
        repair_index(prefix, eod=0, dtype=given)
    assert not (tmp_path / "x.idx").exists()
    repair_index(prefix, eod=0, dtype=stored)
    assert (tmp_path / "x.idx").read_bytes() == whole


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32"])
@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_a_dtype_that_is_right(tmp_path, dtype, length):
    """The last document is empty, so that the file ends in two zeros."""
    rng = np.random.default_rng(length)
    documents = [[*rng.integers(1, 250, rng.integers(0, 2 * length)), 0] for _ in range(200)]
    prefix, whole = without_index(tmp_path, [*documents, [1, 0], [0], [0]], dtype)
    repair_index(prefix, eod=0, dtype=dtype)
    assert (tmp_path / "x.idx").read_bytes() == whole


def test_a_vocabulary_overrules_what_the_ids_look_like(tmp_path):
    prefix, _ = without_index(tmp_path, [[7, 0] * 500, [0] * 2], "uint8")
    with pytest.raises(NotRepairableError, match=r"if it is this one, --vocab-size too"):
        repair_index(prefix, eod=0, dtype="uint8")
    repair_index(prefix, eod=0, dtype="uint8", vocab_size=256)


def test_a_vocabulary_that_the_dtype_cannot_hold(tmp_path):
    prefix, _ = without_index(tmp_path, [[7, 0]], "uint16")
    text = r"uint8 has ids up to 255, too few for a vocabulary of 50,257; give the dtype and"
    with pytest.raises(NotRepairableError, match=text):
        repair_index(prefix, eod=0, dtype="uint8", vocab_size=50_257)
    repair_index(prefix, eod=0, dtype="uint16", vocab_size=65_536)


@pytest.mark.parametrize("ids", [[5, -1, 0], [5, 1 << 24, 0]])
def test_ids_that_no_vocabulary_has(tmp_path, ids):
    prefix, _ = without_index(tmp_path, [ids], "int32")
    text = r"read as int32, 1 ids are negative or not below 16,777,216, the first at token 1; give"
    with pytest.raises(NotRepairableError, match=text):
        repair_index(prefix, eod=0, dtype="int32")
    if ids[1] > 0:
        repair_index(prefix, eod=0, dtype="int32", vocab_size=1 << 25)


def test_a_file_of_narrower_ids_read_as_wider_ones(tmp_path):
    rng = np.random.default_rng(2)
    documents = [[*rng.integers(1, 50_000, 31).tolist(), 0] for _ in range(20)]
    prefix, _ = without_index(tmp_path, [*documents, [0, 0]], "uint16")
    with pytest.raises(NotRepairableError, match=r"read as int32, \d+ ids are negative or not"):
        repair_index(prefix, eod=0, dtype="int32")


def test_checksums_know_the_index(tmp_path):
    documents = [[1, 2, EOD], [EOD], [3, EOD], [1, 2, EOD]]
    prefix, whole = without_index(tmp_path, documents, "uint16", checksums=True)
    text = r"x\.idx: .*x\.crc has the checksum [0-9a-f]{8} of the index that is lost, and the one"
    with pytest.raises(NotRepairableError, match=text):
        repair_index(prefix, eod=EOD, dtype="int16")
    (tmp_path / "x.bin").write_bytes((tmp_path / "x.bin").read_bytes()[:4])
    with pytest.raises(NotRepairableError, match=r"x\.crc holds the checksums of a file of 18 byt"):
        repair_index(prefix, eod=2, dtype="uint16")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bin", "x.crc"]
    prefix, whole = without_index(tmp_path, documents, "uint16", checksums=True)
    repaired = repair_index(prefix, eod=EOD, dtype="uint16")
    assert (tmp_path / "x.idx").read_bytes() == whole
    assert repaired.what.endswith(f"; the index has the checksum that {prefix}.crc notes for it")


def test_a_missing_index_that_is_not_certain(write, tmp_path):
    prefix = write([[[1, 2, EOD]], [[3, 4]]])
    (tmp_path / "corpus.idx").unlink()
    for flags in ({}, {"eod": EOD}, {"dtype": np.uint16}):
        with pytest.raises(NotRepairableError, match=r"give --eod, and --dtype \(uint16"):
            repair_index(prefix, **flags)
    text = r"the last 2 of 5 tokens come after the last id 9\. The last document is cut off"
    with pytest.raises(NotRepairableError, match=text):
        repair_index(prefix, eod=EOD, dtype=np.uint16)
    text = r"read as uint16, 2 ids are not in a vocabulary of 4, the first at token 2"
    with pytest.raises(NotRepairableError, match=text):
        repair_index(prefix, eod=EOD, dtype=np.uint16, vocab_size=4)
    with pytest.raises(NotRepairableError, match=r"10 bytes, which are no whole number of int32"):
        repair_index(prefix, eod=EOD, dtype=np.int32)
    with pytest.raises(NotRepairableError, match=r"the last 5 of 5 tokens come after the last id"):
        repair_index(prefix, eod=70_000, dtype=np.uint16)
    assert not (tmp_path / "corpus.idx").exists()


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(0, EOD - 1), max_size=5), max_size=6),
    st.integers(1, 4),
    st.sampled_from([np.uint16, np.int32]),
)
def test_any_documents_that_end_in_eod(tmp_path_factory, documents, block, dtype):
    """The index written again is byte for byte the one that was lost."""
    directory = tmp_path_factory.mktemp("repair")
    prefix = str(directory / "x")
    with IndexedDatasetBuilder(prefix, dtype) as builder:
        for document in documents:
            builder.add_document([*document, EOD], [len(document) + 1])
        builder.finalize()
    whole = (directory / "x.idx").read_bytes()
    (directory / "x.idx").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coredata.formats.repair_scan._BLOCK", block * np.dtype(dtype).itemsize)
        repair_index(prefix, eod=EOD, dtype=dtype)
    assert (directory / "x.idx").read_bytes() == whole
    verify_indexed(prefix, EOD + 1)


@given(st.lists(st.integers(0, 3), max_size=20), st.sampled_from(["u1", "u2", "u4", "u8"]))
def test_ends_in_equals_numpy(ids, dtype):
    array = np.array(ids, dtype)
    room = np.empty(array.size, np.int64)
    count = ends_in(array, array.dtype.type(2), room)
    assert room[:count].tolist() == np.flatnonzero(array == 2).tolist()
