"""Checksums of blocks: every flipped bit is found, wherever it lies, and its place is named."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.storage.block_checksums import (
    BLOCK,
    BlockChecksums,
    ChecksumError,
    ChecksumFileError,
    GrowingChecksums,
    read_checksums,
)


def checksums_of(content, block=BLOCK, pieces=None):
    growing = GrowingChecksums(block)
    for begin in range(0, len(content), pieces or len(content) or 1):
        growing.update(content[begin : begin + (pieces or len(content))])
    return growing.finish(index=7)


def stored(checksums):
    return np.frombuffer(b"".join(checksums.stored()), np.uint8)


@given(st.binary(max_size=300), st.integers(1, 40), st.integers(1, 50))
def test_one_crc32_for_each_block_however_it_was_written(content, block, pieces):
    found = checksums_of(content, block, pieces)
    expected = [zlib.crc32(content[i : i + block]) for i in range(0, len(content), block)]
    assert found.values.tolist() == expected
    assert (found.size, found.block, found.index) == (len(content), block, 7)


@given(st.binary(max_size=300), st.integers(1, 40))
def test_stored_and_read_again(content, block):
    written = checksums_of(content, block)
    read = read_checksums("x.crc", stored(written), len(content), thorough=True)
    assert read.values.tolist() == written.values.tolist()
    assert (read.size, read.block, read.index) == (written.size, written.block, 7)


@given(st.data(), st.binary(min_size=1, max_size=300), st.integers(1, 40))
def test_every_flipped_bit_is_found(data, content, block):
    checksums = checksums_of(content, block)
    start = data.draw(st.integers(0, len(content) - 1))
    stop = data.draw(st.integers(start + 1, len(content)))
    first, last = checksums.aligned(start, stop)
    assert first <= start < stop <= last
    fetched = bytearray(content[first:last])
    assert checksums.bad_block(first, bytes(fetched)) is None
    place = data.draw(st.integers(0, len(fetched) - 1))
    fetched[place] ^= 1 << data.draw(st.integers(0, 7))
    assert checksums.bad_block(first, bytes(fetched)) == (first + place) // block


def test_the_error_names_file_block_and_bytes():
    content = bytes(5000)
    checksums = checksums_of(content)
    checksums.check("s3://b/x.bin", 2048, content[2048:])
    with pytest.raises(
        ChecksumError,
        match=r"s3://b/x\.bin: block 2 \(bytes 4096 to 5000\) does not have the check",
    ):
        checksums.check("s3://b/x.bin", 2048, content[2048:-1] + b"\1")


@pytest.mark.parametrize(("start", "size"), [(1, 2047), (0, 100), (2048, 100), (4096, 905)])
def test_parts_of_blocks_cannot_be_checked(start, size):
    with pytest.raises(ValueError, match="not whole blocks of 2048 bytes in a file of 5000"):
        checksums_of(bytes(5000)).bad_block(start, bytes(size))


def test_arrays_of_any_item_size():
    growing = GrowingChecksums()
    growing.update(np.arange(3000, dtype=np.uint16).data)
    growing.update(np.empty(0, np.int32).data)
    content = np.arange(3000, dtype=np.uint16).tobytes()
    assert growing.finish(0).values.tolist() == checksums_of(content).values.tolist()


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda data: data[:20], r"x\.crc is not a file of checksums: it begins with b'CDCRC32"),
        (lambda data: b"text" * 20, r"is not a file of checksums: it begins with b'texttext'"),
        (lambda data: data[:8] + b"\2" + data[9:], "has version 2; only version 1 can be read"),
        (lambda data: data[:-1], "has 43 bytes, which are not the checksums of 5000 bytes"),
        (lambda data: data[:12] + bytes(4) + data[16:], "5000 bytes in blocks of 0; it is damaged"),
        (lambda data: data[:-1] + b"\7", "its own checksum is wrong; it is damaged"),
    ],
)
def test_damaged_side_files(damage, text):
    data = np.frombuffer(damage(stored(checksums_of(bytes(5000))).tobytes()), np.uint8)
    with pytest.raises(ChecksumFileError, match=text):
        read_checksums("x.crc", data, 5000, thorough=True)


def test_a_side_file_of_another_file():
    with pytest.raises(ChecksumFileError, match="of a file of 5000 bytes, and the file has 6000"):
        read_checksums("x.crc", stored(checksums_of(bytes(5000))), 6000)


def test_an_empty_file():
    checksums = checksums_of(b"")
    assert checksums.values.size == 0
    assert checksums.aligned(0, 0) == (0, 0)
    checksums.check("x", 0, b"")
    assert isinstance(read_checksums("x.crc", stored(checksums), 0), BlockChecksums)


@pytest.mark.parametrize("block", [0, -1, 1 << 25])
def test_impossible_blocks(block):
    with pytest.raises(ValueError, match=f"block: got {block}, need 1 to"):
        GrowingChecksums(block)
