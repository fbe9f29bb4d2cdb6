"""Token files in a bucket: written, merged and preprocessed there, read by any kind of process."""

import io
import json
import multiprocessing
import os
import re
import tracemalloc
import uuid

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from coredata.formats import (
    IndexedDataset,
    IndexedDatasetBuilder,
    merge,
    open_rows,
    verify_indexed,
)
from coredata.preprocess import PreprocessError, preprocess
from coredata.storage import CopiedObject, StorageError, open_copied
from coredata.testing.fault_proxy import (
    delay,
    flipped_byte,
    forbidden,
    reset,
    short_body,
    stall,
    status,
)
from coredata.text import ByteTokenizer

TOKENS = np.random.default_rng(1).integers(0, 60_000, 500_000, np.uint16)
FORKING = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def options(bucket, tmp_path, monkeypatch):
    """Storage options for reading and writing; whole files may not be staged on this machine."""

    def staged(*_, **__):
        raise AssertionError("a whole file was to be staged on this machine")

    monkeypatch.setattr("coredata.storage.atomic._StagedUpload", staged)
    reading = {"memory": 64 << 20, "copies": str(tmp_path / "copies"), "deadline": 10.0}
    return {**bucket.options, "coredata": {**reading, "disk_bytes": uuid.uuid4().int}}


def write(prefix, tokens=TOKENS, dtype=np.uint16, options=None, pieces=10):
    with IndexedDatasetBuilder(prefix, dtype, storage_options=options) as builder:
        for piece in np.array_split(tokens, pieces):
            builder.add_documents(piece, np.array([piece.size - 7, 7]))


def local_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def test_the_same_bytes_as_a_local_file(bucket, options, tmp_path, monkeypatch):
    monkeypatch.setattr("coredata.storage.multipart.FIRST_PART", 5 << 20)
    tokens = np.tile(TOKENS, 13)  # 13 MB: three parts
    write(f"{bucket.url}/x", tokens, options=options)
    write(str(tmp_path / "x"), tokens)
    for suffix in (".bin", ".idx"):
        assert bucket.get(f"x{suffix}") == local_bytes(str(tmp_path / "x") + suffix)
    assert verify_indexed(f"{bucket.url}/x", storage_options=options).tokens == tokens.size


def test_the_index_appears_last(bucket, options, proxy):
    write(f"{bucket.url}/x", options=options)
    proxy.clear()
    write(f"{bucket.url}/x", TOKENS[:100], options=options, pieces=1)
    done = [
        f"{request.method} {request.target.split('?')[0].rsplit('/', 1)[-1]}"
        for request in proxy.counters().requests
        if request.method in ("PUT", "DELETE")
    ]
    assert done == ["DELETE x.idx", "PUT x.bin", "PUT x.idx"]


@pytest.mark.parametrize("left_by", ["abort", "error"])
def test_an_aborted_writer_leaves_nothing(bucket, options, left_by):
    def stopped():
        with IndexedDatasetBuilder(
            f"{bucket.url}/x", np.uint16, storage_options=options
        ) as builder:
            for _ in range(20):
                builder.add_documents(TOKENS, np.array([TOKENS.size]))
            if left_by == "error":
                raise ValueError("stopped")
            builder.abort()

    if left_by == "error":
        with pytest.raises(ValueError, match="stopped"):
            stopped()
    else:
        stopped()
    assert bucket.names() == []


def test_a_pair_without_its_index_is_no_pair(bucket, options, proxy):
    proxy.set(forbidden(r"^PUT .*\.idx"))
    with pytest.raises(PermissionError, match=r"write s3://.*x\.idx: access is forbidden"):
        write(f"{bucket.url}/x", options=options)
    assert "x.idx" not in bucket.names()
    proxy.set()
    assert not IndexedDataset.exists(f"{bucket.url}/x", options)


def test_merging_in_a_bucket(bucket, options, tmp_path, proxy):
    write(f"{bucket.url}/a", TOKENS[:300_000], options=options)
    write(f"{bucket.url}/b", TOKENS[300_000:], options=options)
    write(str(tmp_path / "a"), TOKENS[:300_000])
    write(str(tmp_path / "b"), TOKENS[300_000:])
    proxy.set(status(503, r"^GET .*\.bin", times=2), status(500, r"^PUT ", times=1))
    merged = merge(
        [f"{bucket.url}/a", f"{bucket.url}/b"], f"{bucket.url}/m", storage_options=options
    )
    assert merged.tokens == TOKENS.size
    merge([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "m"))
    for suffix in (".bin", ".idx"):
        assert bucket.get(f"m{suffix}") == local_bytes(str(tmp_path / "m") + suffix)
    assert not os.path.exists(tmp_path / "copies")  # inputs are not kept


def test_merging_from_a_bucket_to_a_local_file_and_back(bucket, options, tmp_path):
    write(f"{bucket.url}/a", options=options)
    merge([f"{bucket.url}/a"], str(tmp_path / "local"), storage_options=options)
    merge([str(tmp_path / "local")] * 2, f"{bucket.url}/m", storage_options=options)
    assert bucket.get("m.bin") == 2 * TOKENS.tobytes()


def test_merging_that_fails_leaves_nothing(bucket, options, proxy):
    write(f"{bucket.url}/a", options=options)
    proxy.set(status(503, r"^GET .*a\.bin"))
    short = {**options, "coredata": {**options["coredata"], "deadline": 0.5}}
    with pytest.raises(StorageError, match=r"a\.bin: failed \d+ times"):
        merge([f"{bucket.url}/a"], f"{bucket.url}/m", storage_options=short)
    assert bucket.names() == ["a.bin", "a.idx"]


@pytest.mark.slow
def test_memory_is_bounded_while_merging(bucket, options):
    tokens = np.tile(TOKENS, 40)  # 40 MB
    write(f"{bucket.url}/a", tokens, options=options)
    options["coredata"]["memory"] = 16 << 20
    merge([f"{bucket.url}/a"], f"{bucket.url}/warm", storage_options=options)
    tracemalloc.start()
    merge([f"{bucket.url}/a"] * 3, f"{bucket.url}/m", storage_options=options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 << 20
    assert verify_indexed(f"{bucket.url}/m", storage_options=options).tokens == 3 * tokens.size


LINES = [{"text": f"document number {n} " * (n % 7)} for n in range(300)]
JSON_LINES = "".join(json.dumps(line) + "\n" for line in LINES).encode()


def preprocessed(prefix, source, options=None, workers=1, **more):
    return preprocess(
        source,
        prefix,
        ByteTokenizer(),
        append_eod=True,
        workers=workers,
        shard_bytes=3000,
        storage_options=options,
        **more,
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_preprocessing_in_a_bucket(bucket, options, tmp_path, workers):
    (tmp_path / "in.jsonl").write_bytes(JSON_LINES)
    source = bucket.put("in.jsonl", JSON_LINES)
    report = preprocessed(f"{bucket.url}/out/x", source, options, workers)
    assert report.shards > 5
    preprocessed(str(tmp_path / "x"), str(tmp_path / "in.jsonl"))
    for suffix in (".bin", ".idx"):
        name = f"x_text_document{suffix}"
        assert bucket.get(f"out/{name}") == local_bytes(str(tmp_path / name))
    assert bucket.names() == ["in.jsonl", "out/x_text_document.bin", "out/x_text_document.idx"]


def test_preprocessing_with_checksums_in_a_bucket(bucket, options, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(JSON_LINES)
    source = bucket.put("in.jsonl", JSON_LINES)
    preprocessed(f"{bucket.url}/out/x", source, options, checksums=True)
    preprocessed(str(tmp_path / "x"), str(tmp_path / "in.jsonl"), checksums=True)
    names = [f"x_text_document{suffix}" for suffix in (".bin", ".crc", ".idx")]
    assert bucket.names() == ["in.jsonl", *[f"out/{name}" for name in names]]
    for name in names:
        assert bucket.get(f"out/{name}") == local_bytes(str(tmp_path / name))
    reading = {**options, "coredata": {**options["coredata"], "checksums": True}}
    dataset = IndexedDataset(f"{bucket.url}/out/x_text_document", storage_options=reading)
    assert [dataset[0].size, dataset[1].size] == [19, 37]


FAULTS = {
    "500": status(500, r"^GET .*/in\.jsonl", skip=1, times=3),
    "503": status(503, r"^GET .*/in\.jsonl", skip=1, times=3),
    "reset in the middle": reset(r"^GET .*/in\.jsonl", at_byte=500, skip=1, times=2),
    "body cut off": short_body(500, r"^GET .*/in\.jsonl", skip=1, times=2),
    "silence in the middle": stall(30.0, r"^GET .*/in\.jsonl", at_byte=500, skip=1, times=1),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_faults_while_input_is_read_are_not_seen(bucket, options, proxy, tmp_path, fault):
    (tmp_path / "in.jsonl").write_bytes(JSON_LINES)
    source = bucket.put("in.jsonl", JSON_LINES)
    proxy.set(fault)
    options["coredata"]["timeout"] = 1.0
    preprocessed(str(tmp_path / "far"), source, options)
    assert sum(proxy.counters().faults.values()) == fault.times
    preprocessed(str(tmp_path / "near"), str(tmp_path / "in.jsonl"))
    for suffix in (".bin", ".idx"):
        name = f"_text_document{suffix}"
        far, near = (local_bytes(f"{tmp_path}/{side}{name}") for side in ("far", "near"))
        assert far == near


def test_input_that_cannot_be_had_is_not_called_broken(bucket, options, proxy, tmp_path):
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["one", "two"] * 1000}), file)
    source = bucket.put("in.parquet", file.getvalue())
    preprocessed(str(tmp_path / "x"), source, options)
    options["coredata"]["deadline"] = 0.3
    proxy.set(status(503, r"^GET .*/in\.parquet"))
    with pytest.raises(StorageError, match=r"bytes .* of .*/in\.parquet: failed .*503"):
        preprocessed(str(tmp_path / "x"), source, options)
    with pytest.raises(StorageError, match=r"bytes .* of .*/in\.parquet: failed .*503"):
        open_rows(source, storage_options=options)


def test_preprocessing_that_was_stopped_goes_on(bucket, options, proxy):
    source = bucket.put("in.jsonl", JSON_LINES)
    short = {**options, "coredata": {**options["coredata"], "deadline": 0.3}}
    proxy.set(status(503, r"^PUT .*/000003_0\.bin"))
    with pytest.raises(PreprocessError, match=r"write s3://.*000003_0\.bin: failed"):
        preprocessed(f"{bucket.url}/x", source, short)
    assert not any(re.match(r"x_text.*", key) for key in bucket.names())
    proxy.set()
    report = preprocessed(f"{bucket.url}/x", source, options)
    assert report.shards_reused == 3
    assert IndexedDataset(f"{bucket.url}/x_text_document", storage_options=options)[0].size == 19


READ = "reader.view()[5:10].tolist()"


@FORKING
@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("used", [True, False])
def test_copies_in_other_processes(bucket, options, proxy, method, used):
    url = bucket.put("a.idx", bytes(range(100)))
    reader = open_copied(url, options)
    if used:
        assert reader.view()[:3].tolist() == [0, 1, 2]
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        for answer in [pool.apply_async(eval, (READ, {"reader": reader})) for _ in range(4)]:
            assert answer.get(timeout=60) == [5, 6, 7, 8, 9]
    assert proxy.counters().count("GET", "a.idx") == 1


def test_a_forked_child_opens_copies_after_its_parent_has(bucket, options):
    first = CopiedObject(bucket.put("a.idx", b"first"), options)
    second = CopiedObject(bucket.put("b.idx", b"second"), options)
    assert first.view().tobytes() == b"first"
    child = os.fork()
    if child == 0:
        right = second.view().tobytes() == b"second" and first.view().tobytes() == b"first"
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert second.view().tobytes() == b"second"


@FORKING
@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_token_files_in_other_processes(bucket, options, method):
    write(f"{bucket.url}/x", options=options)
    dataset = IndexedDataset(f"{bucket.url}/x", storage_options=options)
    expected = dataset[3][:5].tolist()
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        answers = [pool.apply_async(eval, ("d[3][:5].tolist()", {"d": dataset})) for _ in range(4)]
        assert [answer.get(timeout=60) for answer in answers] == [expected] * 4
    assert dataset[4].size == TOKENS.size // 10 - 7


def test_a_flipped_byte_is_not_noticed_without_checksums(bucket, options, proxy):
    write(f"{bucket.url}/x", options=options)
    dataset = IndexedDataset(f"{bucket.url}/x", storage_options=options)
    proxy.set(delay(0.01), flipped_byte(0, r"^GET .*\.bin ", times=1))
    assert dataset.get(0, 0, 4)[0] != TOKENS[0]
