"""Every way in which a pair of files can be broken has an error of its own."""

import gzip
import struct

import numpy as np
import pytest

from coredata.formats import (
    DocumentIndexError,
    DTypeError,
    IndexedDataset,
    IndexedDatasetError,
    IndexSizeError,
    MagicError,
    MissingFileError,
    SequenceLengthError,
    SequencePointerError,
    TokenError,
    VersionError,
    has_modes,
    verify_indexed,
)

# The fixture has five sequences (3, 0, 1, 2, 4 tokens of uint16) and four documents.
LENGTHS, POINTERS, DOCUMENTS = 34, 34 + 20, 34 + 60


@pytest.fixture
def idx(prefix, tmp_path):
    return tmp_path / "corpus.idx"


def put(path, offset, data):
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)


def int64s(*values):
    return np.array(values, np.int64).tobytes()


def fails_on_open(prefix, error, text):
    for mmap in (True, False):
        with pytest.raises(error, match=text):
            IndexedDataset(prefix, mmap=mmap)
    with pytest.raises(error, match=text):
        verify_indexed(prefix)


def fails_on_verify(prefix, error, text):
    IndexedDataset(prefix)
    with pytest.raises(error, match=text):
        verify_indexed(prefix)


def test_all_errors_are_value_errors():
    for error in (MagicError, MissingFileError, TokenError, SequenceLengthError):
        assert issubclass(error, IndexedDatasetError)
        assert issubclass(error, ValueError)
    assert issubclass(MissingFileError, FileNotFoundError)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "it is empty"),
        (b'{"text": "a line of JSON"}\n' * 3, r"it looks like text: '\{\"text\": "),
        ("prose that isn’t ASCII, but UTF-8 → text".encode(), "it looks like text: 'prose that"),
        (gzip.compress(b"x" * 100, mtime=0), "it is compressed with gzip; unpack it first"),
        (b"\x28\xb5\x2f\xfd" + bytes(range(40)), "it is compressed with zstd; unpack it first"),
        (b"PK\x03\x04" + bytes(range(40)), "it is a zip archive"),
        (b"PAR1" + bytes(range(40)), "it is a parquet file"),
        (
            b"TNTIDX\x00\x00" + bytes(40),
            "it is in the older TNTIDX index format; write the dataset ag",
        ),
        (b"version https://git-lfs.github.com/spec/v1\noid", "it is a Git LFS pointer"),
        (bytes(64), "it begins with zeros: space was reserved for it, but it was never written"),
        (b"\xff\x00\x9d\x80" * 12, r"it begins with b'\\xff\\x00\\x9d"),
        (b"MMIDIDX\x00\x01" + bytes(40), r"it begins with b'MMIDIDX\\x00\\x01'"),
    ],
)
def test_wrong_magic(prefix, idx, content, text):
    idx.write_bytes(content)
    expected = (
        rf"corpus.idx is not an index file: it should begin with b'MMIDIDX\\x00\\x00', but {text}"
    )
    fails_on_open(prefix, MagicError, expected)


def test_wrong_version(prefix, idx):
    put(idx, 9, struct.pack("<Q", 2))
    fails_on_open(prefix, VersionError, r"corpus\.idx has version 2; only version 1 can be read")


def test_unknown_dtype_code(prefix, idx):
    put(idx, 17, b"\x0b")
    fails_on_open(prefix, DTypeError, r"corpus\.idx: there is no dtype code 11; the codes are 1 u")


@pytest.mark.parametrize("size", [4, 9, 33])
def test_cut_off_in_the_header(prefix, idx, size):
    idx.write_bytes(idx.read_bytes()[:size])
    fails_on_open(prefix, IndexSizeError, f"corpus.idx has {size} bytes, and an index file at leas")


def test_shorter_than_the_counts(prefix, idx):
    idx.write_bytes(idx.read_bytes()[:-1])
    text = r"corpus\.idx has 133 bytes, but 5 sequences and 5 document entries take 134: it is cut"
    fails_on_open(prefix, IndexSizeError, text)


def test_longer_than_the_counts(prefix, idx):
    idx.write_bytes(idx.read_bytes() + b"x")
    text = r"has 135 bytes, but 5 sequences and 5 document entries take 134: it is longer tha"
    fails_on_open(prefix, IndexSizeError, text)


@pytest.mark.parametrize("field", [18, 26])
def test_counts_of_any_size(prefix, idx, field):
    put(idx, field, b"\xff" * 8)
    fails_on_open(prefix, IndexSizeError, f"has 134 bytes, but .*{2**64 - 1}")


@pytest.mark.parametrize("change", [-1, 1])
def test_wrong_size_with_modes(write, documents, tmp_path, change):
    prefix = write(documents, modes=[1, 2, 3, 4, 5])
    idx = tmp_path / "corpus.idx"
    idx.write_bytes((idx.read_bytes() + b"x")[: 140 if change > 0 else 138])
    state = "longer than it should be" if change > 0 else "cut off"
    text = rf"has {139 + change} bytes, but .* take 139 with modes: it is {state}"
    with pytest.raises(IndexSizeError, match=text):
        IndexedDataset(prefix, multimodal=True)
    with pytest.raises(IndexSizeError, match=r"take 134: it is longer than it should be"):
        verify_indexed(prefix)


def test_modes_that_were_not_expected(write, documents):
    prefix = write(documents, modes=[1, 2, 3, 4, 5])
    text = r"take 134 without modes; it has modes: open it with multimodal=True"
    with pytest.raises(IndexSizeError, match=text):
        IndexedDataset(prefix)
    assert has_modes(prefix)


def test_modes_that_are_missing(prefix):
    text = r"take 139 with modes; it has no modes: open it with multimodal=False"
    with pytest.raises(IndexSizeError, match=text):
        IndexedDataset(prefix, multimodal=True)
    assert not has_modes(prefix)


def test_an_empty_document_list(write, tmp_path):
    prefix = write([])
    idx = tmp_path / "corpus.idx"
    put(idx, 26, struct.pack("<Q", 0))
    idx.write_bytes(idx.read_bytes()[:34])
    fails_on_open(prefix, DocumentIndexError, r"corpus\.idx has an empty document list; it has at")


def test_documents_that_do_not_start_at_zero(prefix, idx):
    put(idx, DOCUMENTS, int64s(1))
    fails_on_open(prefix, DocumentIndexError, r"corpus\.idx: the document list starts at 1, not at")


@pytest.mark.parametrize("last", [4, 6, -1])
def test_documents_that_do_not_end_at_the_last_sequence(prefix, idx, last):
    put(idx, DOCUMENTS + 32, int64s(last))
    text = rf"corpus\.idx: the document list ends at {last}, but there are 5 sequences"
    fails_on_open(prefix, DocumentIndexError, text)


@pytest.mark.parametrize("entries", [(3, 2), (2, -4), (9, 9)])
def test_documents_that_are_not_ascending(prefix, idx, entries):
    put(idx, DOCUMENTS + 8, int64s(*entries))
    fails_on_verify(prefix, DocumentIndexError, r"corpus\.idx: the document list goes from .* down")


@pytest.mark.parametrize("length", [-1, -(2**31)])
def test_negative_lengths(prefix, idx, length):
    put(idx, LENGTHS + 8, np.int32(length).tobytes())
    text = rf"corpus\.idx: sequence 2 has length {length}; lengths are 0 or more"
    fails_on_verify(prefix, SequenceLengthError, text)


def test_decreasing_pointers(prefix, idx):
    put(idx, POINTERS + 24, int64s(4))
    text = r"the pointer of sequence 3 is 4, less than the one before, 6; expected 8"
    fails_on_verify(prefix, SequencePointerError, text)


def test_pointers_past_the_end(prefix, idx):
    put(idx, POINTERS + 16, int64s(19))
    text = r"sequence 2 is 19, and its 2 bytes run past the end of the \.bin file of 20 bytes; exp"
    fails_on_verify(prefix, SequencePointerError, text)


@pytest.mark.parametrize("pointer", [-2, 2])
def test_first_pointer_not_zero(prefix, idx, pointer):
    put(idx, POINTERS, int64s(pointer))
    fails_on_verify(prefix, SequencePointerError, rf"sequence 0 is {pointer}, .*")


def test_gaps(prefix, idx):
    put(idx, POINTERS + 24, int64s(10))
    text = r"sequence 3 is 10, but the sequences before it end at 8; there is a gap or an overlap"
    fails_on_verify(prefix, SequencePointerError, text)


def test_a_bin_file_that_was_cut_off(prefix, tmp_path):
    path = tmp_path / "corpus.bin"
    path.write_bytes(path.read_bytes()[:-1])
    text = r"corpus\.idx: the last sequence ends at byte 20, but .*corpus\.bin has 19 bytes; the"
    fails_on_open(prefix, SequencePointerError, text)


def test_a_bin_file_that_is_too_long(prefix, tmp_path):
    path = tmp_path / "corpus.bin"
    path.write_bytes(path.read_bytes() + b"x")
    text = r"corpus\.bin has 21 bytes, but its sequences end at byte 20"
    fails_on_verify(prefix, SequencePointerError, text)


@pytest.mark.parametrize("missing", ["bin", "idx"])
def test_a_missing_half(prefix, tmp_path, missing):
    (tmp_path / f"corpus.{missing}").unlink()
    there = {"bin": "idx", "idx": "bin"}[missing]
    text = rf"corpus\.{missing} does not exist, although .*corpus\.{there} does; a dataset is a"
    fails_on_open(prefix, MissingFileError, text)
    assert not IndexedDataset.exists(prefix)


def test_both_missing(tmp_path):
    text = r"none\.bin and .*none\.idx do not exist; give the path of the pair without"
    fails_on_open(str(tmp_path / "none"), MissingFileError, text)
    with pytest.raises(MissingFileError, match=text):
        has_modes(tmp_path / "none")


@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_a_path_with_its_suffix(prefix, suffix):
    text = rf"corpus\{suffix} was given as a path prefix.*; use .*corpus$"
    fails_on_open(prefix + suffix, MissingFileError, text)


def test_a_directory_in_the_place_of_a_file(tmp_path):
    (tmp_path / "x.idx").mkdir()
    (tmp_path / "x.bin").mkdir()
    with pytest.raises(OSError, match="is a directory"):
        IndexedDataset(tmp_path / "x")


def test_ids_outside_the_vocabulary(prefix):
    assert verify_indexed(prefix, vocab_size=11).tokens == 10
    text = (
        r"corpus\.bin: document 3, sequence 4, token 2: the id 9 is not in a vocabulary of 9 "
        r"\(0 to 8\); the file was written with another tokenizer, or is damaged"
    )
    with pytest.raises(TokenError, match=text):
        verify_indexed(prefix, vocab_size=9)


def test_negative_ids(write):
    prefix = write([[[1], [2, -3]]], np.int32)
    with pytest.raises(TokenError, match="document 0, sequence 1, token 1: the id -3 is not in"):
        verify_indexed(prefix, vocab_size=9)


def test_what_a_sound_file_says(prefix):
    verified = verify_indexed(prefix)
    assert (verified.sequences, verified.documents, verified.tokens) == (5, 4, 10)
    assert (verified.path_prefix, verified.dtype, verified.multimodal) == (prefix, "uint16", False)


def test_faults_are_found_in_every_chunk(write, tmp_path, monkeypatch):
    monkeypatch.setattr("coredata.formats.verify._CHUNK", 3)
    prefix = write([[[k]] for k in range(10)])
    assert verify_indexed(prefix, vocab_size=10).sequences == 10
    with pytest.raises(TokenError, match="document 9, sequence 9, token 0"):
        verify_indexed(prefix, vocab_size=9)
    sound = (tmp_path / "corpus.idx").read_bytes()
    for k in range(1, 10):
        put(tmp_path / "corpus.idx", 34 + 40 + 8 * k, int64s(2 * k - 1))
        with pytest.raises(SequencePointerError, match=f"the pointer of sequence {k} is"):
            verify_indexed(prefix)
        (tmp_path / "corpus.idx").write_bytes(sound)
        put(tmp_path / "corpus.idx", 34 + 120 + 8 * k, int64s(k + 2 if k < 9 else 1))
        with pytest.raises(DocumentIndexError, match="the document list goes from"):
            verify_indexed(prefix)
        (tmp_path / "corpus.idx").write_bytes(sound)
