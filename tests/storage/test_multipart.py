"""Objects written in parts: complete or not there at all, whatever goes wrong."""

import tracemalloc

import fsspec
import pytest

from coredata.storage import StorageError, atomic_write, begin_write, read_bytes, remove
from coredata.storage.multipart import FIRST_PART, MultipartUpload, part_size
from coredata.testing.fault_proxy import delay, forbidden, missing, reset, stall, status

PART = 5 << 20
CONTENT = bytes(range(256)) * (9 << 12)  # 9 MiB: two parts
OPTIONS = {"deadline": 30.0, "timeout": 5.0}


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of 5 MiB, of which two are not full."""
    monkeypatch.setattr("coredata.storage.multipart.FIRST_PART", PART)


@pytest.fixture
def target(bucket):
    """URL and options of an object to write, and the means to look at its bucket."""
    options = {**bucket.options, "coredata": OPTIONS}
    return f"{bucket.url}/dir/x.bin", options, bucket


def write(url, options, content=CONTENT, first_part=PART):
    upload = MultipartUpload(url, options, first_part)
    try:
        for begin in range(0, len(content), 1 << 20):
            upload.write(content[begin : begin + (1 << 20)])
        upload.prepare()
        upload.publish()
    finally:
        upload.discard()


def uploads(bucket):
    """Uploads that were begun and not ended."""
    s3 = fsspec.filesystem("s3", **bucket.direct)
    return s3.call_s3("list_multipart_uploads", Bucket=bucket.name).get("Uploads", [])


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART, len(CONTENT)])
def test_what_was_written_is_there(target, proxy, size):
    url, options, bucket = target
    write(url, options, CONTENT[:size] if size <= len(CONTENT) else bytes(size))
    assert bucket.get("dir/x.bin") == (CONTENT[:size] if size <= len(CONTENT) else bytes(size))
    requests = proxy.counters().requests
    parts = sum("partNumber" in request.target for request in requests)
    assert parts == (-(-size // PART) if size >= PART else 0)
    assert uploads(bucket) == []


def test_nothing_is_seen_before_it_is_published(target):
    url, options, bucket = target
    upload = MultipartUpload(url, options, PART)
    upload.write(CONTENT)
    upload.prepare()
    assert bucket.names() == []
    upload.publish()
    assert bucket.names() == ["dir/x.bin"]
    upload.discard()
    assert bucket.get("dir/x.bin") == CONTENT


@pytest.mark.parametrize("size", [10, len(CONTENT)])
def test_an_upload_that_is_discarded_leaves_nothing(target, size):
    url, options, bucket = target
    bucket.put("dir/x.bin", b"old")
    upload = MultipartUpload(url, options, PART)
    upload.write(CONTENT[:size])
    upload.discard()
    upload.discard()
    assert bucket.get("dir/x.bin") == b"old"
    assert uploads(bucket) == []


def test_reading_after_writing_sees_the_new_object(target):
    url, options, _ = target
    with atomic_write(url, options) as file:
        file.write(b"one")
    assert read_bytes(url, options) == b"one"
    with atomic_write(url, options) as file:
        file.write(b"two")
    assert read_bytes(url, options) == b"two"
    remove(url, options)
    with pytest.raises(FileNotFoundError):
        read_bytes(url, options)


PARTS, COMPLETE = r"^PUT .*partNumber", r"^POST .*uploadId="


@pytest.mark.parametrize(
    "fault",
    [
        status(500, PARTS, times=2),
        status(503, PARTS, times=2),
        status(429, PARTS, times=2),
        reset(PARTS, times=2),
        stall(2, PARTS, times=2),
        reset(PARTS, at_byte=0, times=2),
        status(503, r"^POST .*uploads", times=2),
        status(500, COMPLETE, times=2),
        reset(COMPLETE, times=2),
    ],
    ids=lambda fault: f"{fault.kind}{fault.status or ''}{fault.match[-8:]}{fault.at_byte}",
)
def test_faults_that_pass(target, proxy, fault):
    url, options, bucket = target
    proxy.set(fault)
    write(url, options)
    assert bucket.get("dir/x.bin") == CONTENT
    assert sum(proxy.counters().faults.values()) >= 1
    assert uploads(bucket) == []


def test_an_answer_that_is_lost_after_the_upload_was_completed(target, proxy):
    url, options, bucket = target
    proxy.set(reset(COMPLETE, at_byte=0, times=1))
    write(url, options)
    assert bucket.get("dir/x.bin") == CONTENT


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (status(503, PARTS), StorageError, r"write part \d of s3://.*x\.bin: failed \d+ times"),
        (forbidden(PARTS), PermissionError, r"write part \d of s3://.*x\.bin: access is forbidden"),
        (forbidden(COMPLETE), PermissionError, r"complete s3://.*x\.bin: access is forbidden"),
        (missing(r"^POST .*uploads"), FileNotFoundError, r"begin to write s3://.*x\.bin"),
    ],
)
def test_faults_that_do_not_pass_leave_nothing(target, proxy, fault, kind, text):
    url, options, bucket = target
    proxy.set(fault)
    with pytest.raises(kind, match=text):
        write(url, {**options, "coredata": {**OPTIONS, "deadline": 1.0}})
    assert bucket.names() == []
    assert uploads(bucket) == []


def test_an_interrupted_writer_leaves_nothing(target, small_parts):
    url, options, bucket = target

    def interrupted():
        with begin_write(url, options) as pending:
            pending.file.write(CONTENT)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert bucket.names() == []
    assert uploads(bucket) == []


def test_parts_are_uploaded_while_the_next_is_written(target, proxy):
    url, options, bucket = target
    proxy.set(delay(0.2, PARTS))
    write(url, options, bytes(20 << 20))
    assert 2 <= proxy.counters().most_at_once <= 3
    assert bucket.get("dir/x.bin") == bytes(20 << 20)


def test_memory_is_bounded(target):
    url, options, bucket = target
    write(url, options)
    upload, piece = MultipartUpload(url, options, PART), bytes(1 << 20)
    tracemalloc.start()
    for _ in range(80):
        upload.write(piece)
    upload.prepare()
    upload.publish()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bucket.get("dir/x.bin") == bytes(80 << 20)
    assert peak < 60 << 20


def test_parts_grow_so_that_large_objects_fit():
    sizes = [part_size(number) for number in range(10_000)]
    assert sizes[0] == FIRST_PART == 8 << 20
    assert sizes == sorted(sizes)
    assert sum(sizes) > 2 << 40
    assert max(sizes) <= 5 << 30  # S3's limit for one part


def test_more_parts_than_s3_takes(target, monkeypatch):
    url, options, bucket = target
    monkeypatch.setattr("coredata.storage.multipart._MOST_PARTS", 2)
    with pytest.raises(
        OSError, match=r"x\.bin: \d+ bytes are written, and S3 takes no more than 2"
    ):
        write(url, options, bytes(4 * PART))
    assert bucket.names() == []


def test_a_bucket_is_no_file(bucket):
    with pytest.raises(IsADirectoryError, match=r"names a bucket; add the name of an object"):
        begin_write(bucket.url, bucket.options)


def test_arrays_of_any_item_size(target):
    import numpy as np

    url, options, bucket = target
    with atomic_write(url, options) as file:
        file.write(np.arange(3, dtype=np.uint16).data)
        file.write(np.empty(0, np.uint16).data)
    assert bucket.get("dir/x.bin") == b"\0\0\1\0\2\0"
