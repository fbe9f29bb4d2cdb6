"""Token files with checksums beside them: a flipped byte never reaches a reader."""

import os
import shutil
import uuid

import numpy as np
import pytest

from coredata.formats import (
    IndexedDataset,
    IndexedDatasetBuilder,
    merge,
    verify_block_checksums,
    write_block_checksums,
)
from coredata.storage import ChecksumError, ChecksumFileError
from coredata.testing.fault_proxy import flipped_byte

TOKENS = np.random.default_rng(0).integers(0, 60_000, 20_000, np.uint16)
LENGTHS = np.full(200, 100)


def write(prefix, checksums=True, **options):
    with IndexedDatasetBuilder(prefix, np.uint16, checksums=checksums, **options) as builder:
        builder.add_documents(TOKENS[:7777], np.array([7000, 777]))
        builder.add_documents(TOKENS[7777:], np.array([TOKENS.size - 7777]))


@pytest.fixture
def prefix(tmp_path):
    write(str(tmp_path / "x"))
    return str(tmp_path / "x")


def flip(path, byte, bit=0):
    with open(path, "r+b") as file:
        file.seek(byte)
        old = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([old ^ 1 << bit]))


def test_the_writer_and_the_function_write_the_same(prefix, tmp_path):
    by_writer = (tmp_path / "x.crc").read_bytes()
    os.unlink(tmp_path / "x.crc")
    assert write_block_checksums(prefix) == str(tmp_path / "x.crc")
    assert (tmp_path / "x.crc").read_bytes() == by_writer
    assert len(by_writer) == 32 + 4 * -(-2 * TOKENS.size // 2048)


def test_a_sound_file_verifies(prefix):
    found = verify_block_checksums(prefix)
    assert (found.size, found.block) == (2 * TOKENS.size, 2048)
    write_block_checksums(prefix, block=333)
    assert verify_block_checksums(prefix).block == 333


def test_without_the_option_there_is_no_side_file_and_an_old_one_goes(prefix, tmp_path):
    write(prefix, checksums=False)
    assert sorted(os.listdir(tmp_path)) == ["x.bin", "x.idx"]
    with pytest.raises(
        ChecksumFileError, match=r"x\.crc does not exist, and checksums of .*x\.bin"
    ):
        verify_block_checksums(prefix)


def test_an_aborted_writer_leaves_nothing(tmp_path):
    with IndexedDatasetBuilder(str(tmp_path / "y"), checksums=True) as builder:
        builder.add_document([1], [1])
        builder.abort()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("byte", [0, 2047, 2048, 39_999])
def test_verify_names_the_damaged_block(prefix, byte):
    flip(prefix + ".bin", byte)
    with pytest.raises(ChecksumError, match=rf"x\.bin: block {byte // 2048} \(bytes "):
        verify_block_checksums(prefix)


@pytest.mark.parametrize("byte", [9, 40, 60])
def test_verify_finds_a_damaged_index(prefix, byte):
    flip(prefix + ".idx", byte)
    with pytest.raises(ChecksumError, match=r"x\.idx has the checksum .* was written with it"):
        verify_block_checksums(prefix)


def test_verify_finds_damaged_checksums(prefix):
    flip(prefix + ".crc", 50)
    with pytest.raises(ChecksumFileError, match=r"x\.crc: its own checksum is wrong"):
        verify_block_checksums(prefix)


def test_merging_writes_checksums(prefix, tmp_path):
    merge([prefix, prefix], str(tmp_path / "z"), checksums=True)
    assert verify_block_checksums(str(tmp_path / "z")).size == 4 * TOKENS.size
    merge([prefix, prefix], str(tmp_path / "z"))
    assert not (tmp_path / "z.crc").exists()


@pytest.fixture
def served(prefix, web, tmp_path):
    """The pair behind a web server, and options with which nothing is in memory yet."""
    for suffix in (".bin", ".idx", ".crc"):
        shutil.copy(prefix + suffix, web.root / f"x{suffix}")
    options = {"checksums": True, "copies": str(tmp_path / "copies"), "deadline": 20.0}
    unique = {"disk_bytes": uuid.uuid4().int}
    return f"{web.url}/x", {"coredata": {**options, **unique}}, web.proxy


def test_sound_bytes_pass(served):
    url, options, proxy = served
    dataset = IndexedDataset(url, storage_options=options)
    assert np.concatenate(list(dataset)).tolist() == TOKENS.tolist()
    assert dataset.get(1, 10, 5).tolist() == TOKENS[7010:7015].tolist()
    for request in proxy.counters().requests:
        if request.method == "GET" and request.target.endswith(".bin"):
            assert int(request.range[6:].split("-")[0]) % 2048 == 0


@pytest.mark.parametrize("byte", [0, 1500])
def test_a_flipped_byte_is_fetched_again(served, byte):
    url, options, proxy = served
    dataset = IndexedDataset(url, storage_options=options)
    proxy.set(flipped_byte(byte, r"^GET .*\.bin ", times=2))
    assert dataset.get(1, 10, 5).tolist() == TOKENS[7010:7015].tolist()
    assert proxy.counters().faults["flip"] == 2
    assert dataset.bin_reader.counters.retries == 2


def test_a_damaged_object_is_an_error(served, web):
    url, options, _ = served
    flip(web.root / "x.bin", 14_025)
    dataset = IndexedDataset(url, storage_options=options)
    with pytest.raises(
        ChecksumError,
        match=r"bytes 12288 … 14335 of http.*x\.bin: .*x\.bin: block 6 \(bytes 12288 to 14336\) "
        r"does not .*, 3 times: what is stored is damaged",
    ):
        dataset.get(1, 10, 5)
    assert dataset.get(0, 0, 5).tolist() == TOKENS[:5].tolist()


def test_a_flipped_byte_in_the_index_is_fetched_again(served):
    url, options, proxy = served
    proxy.set(flipped_byte(36, r"^GET .*\.idx ", times=2))
    dataset = IndexedDataset(url, storage_options=options)
    assert dataset.sequence_lengths.tolist() == [7000, 777, TOKENS.size - 7777]
    assert proxy.counters().faults["flip"] == 2


def test_a_damaged_index_is_an_error_and_leaves_no_copy(served, web, tmp_path):
    url, options, _ = served
    flip(web.root / "x.idx", 36)
    with pytest.raises(ChecksumError, match=r"x\.idx has the checksum .* it came so 3 times"):
        IndexedDataset(url, storage_options=options)
    kept = [name for name in os.listdir(tmp_path / "copies") if name.endswith(".json")]
    assert len(kept) == 1  # of the checksums


def test_a_copy_from_before_is_held_to_the_checksum_too(served, tmp_path):
    url, options, proxy = served
    careless = {"coredata": {**options["coredata"], "checksums": False}}
    proxy.set(flipped_byte(36, r"^GET .*\.idx ", times=1))
    wrong = IndexedDataset(url, storage_options=careless, fast_cache_load=True)
    assert wrong.sequence_lengths[0] != 7000
    right = IndexedDataset(url, storage_options=options)
    assert right.sequence_lengths[0] == 7000


def test_checksums_that_are_not_there(served, web):
    url, options, _ = served
    os.unlink(web.root / "x.crc")
    with pytest.raises(
        ChecksumFileError,
        match=r"x\.crc does not exist.*write_block_checksums\('http.*/x'\), or read with .checks",
    ):
        IndexedDataset(url, storage_options=options)


def test_blocks_that_are_too_large_to_read_by(served, web):
    url, options, _ = served
    write_block_checksums(str(web.root / "x"), block=4096)
    with pytest.raises(ChecksumFileError, match=r"x\.crc has blocks of 4096 bytes, and reading ne"):
        IndexedDataset(url, storage_options=options)
    assert verify_block_checksums(url, storage_options=options).block == 4096


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_written_and_verified_behind_urls(where, bucket, tmp_path):
    url = f"{bucket.url}/x" if where == "s3" else f"memory://checksums{tmp_path}/x"
    given = bucket.options if where == "s3" else {}
    options = {**given, "coredata": {"copies": str(tmp_path), "checksums": True}}
    write(url, storage_options=options)
    assert verify_block_checksums(url, storage_options=options).size == 2 * TOKENS.size
    dataset = IndexedDataset(url, storage_options=options)
    assert dataset[0].tolist() == TOKENS[:7000].tolist()
    write_block_checksums(url, storage_options=options)
    assert verify_block_checksums(url, storage_options=options).size == 2 * TOKENS.size
