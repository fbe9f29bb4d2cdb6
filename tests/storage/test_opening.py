"""Many token files opened at once: few requests, together, and nothing is remembered after."""

import uuid

import numpy as np
import pytest

from coredata.formats import (
    IndexedDataset,
    IndexedDatasetBuilder,
    MagicError,
    MissingFileError,
    open_many,
    prepared,
)
from coredata.storage import StorageError, looked_up, open_reader
from coredata.storage.options import read_options
from coredata.storage.service import read_service
from coredata.testing.fault_proxy import delay, forbidden, status


def write(prefix, first, options=None):
    with IndexedDatasetBuilder(prefix, np.uint16, storage_options=options) as builder:
        builder.add_documents(np.arange(first, first + 10, dtype=np.uint16), np.array([6, 4]))


@pytest.fixture
def options(bucket, tmp_path):
    reading = {"copies": str(tmp_path / "copies"), "deadline": 10.0}
    return {**bucket.options, "coredata": {**reading, "disk_bytes": uuid.uuid4().int}}


@pytest.fixture
def prefixes(bucket, proxy):
    """Twelve pairs in one directory."""
    urls = [f"{bucket.url}/dir/x{number}" for number in range(12)]
    for number, url in enumerate(urls):
        write(url, 100 * number, bucket.direct)
    proxy.clear()
    return urls


def kinds(proxy):
    """How many listings, downloads of an index, and questions about one object there were."""
    requests = proxy.counters().requests
    listings = sum("list-type" in request.target for request in requests)
    return listings, proxy.counters().count("GET", ".idx"), proxy.counters().count("HEAD")


def firsts(datasets):
    return [int(dataset[0][0]) for dataset in datasets]


def test_one_listing_and_one_download_each(prefixes, options, proxy):
    assert firsts(open_many(prefixes, storage_options=options)) == [100 * n for n in range(12)]
    assert kinds(proxy) == (1, 12, 0)
    proxy.clear()
    datasets = open_many(prefixes, storage_options=options)
    assert kinds(proxy) == (1, 0, 0)
    assert firsts(datasets) == [100 * n for n in range(12)]


def test_downloads_run_together(prefixes, options, proxy):
    proxy.set(delay(0.1))
    open_many(prefixes, storage_options=options)
    assert proxy.counters().most_at_once >= 8


def test_a_few_objects_are_asked_for_one_by_one(prefixes, options, proxy):
    assert firsts(open_many(prefixes[:3], storage_options=options)) == [0, 100, 200]
    assert kinds(proxy) == (0, 3, 6)


def test_directories_are_listed_each(bucket, options, proxy):
    urls = [f"{bucket.url}/{d}/x{n}" for d in "ab" for n in range(4)]
    for number, url in enumerate(urls):
        write(url, number, bucket.direct)
    proxy.clear()
    assert firsts(open_many([*urls, urls[0]], storage_options=options)) == [*range(8), 0]
    assert kinds(proxy) == (2, 8, 0)


def test_a_listing_that_pays_is_read_to_its_end(prefixes, options, proxy, monkeypatch):
    monkeypatch.setattr("coredata.storage.connection._PAGE", 12)
    monkeypatch.setattr("coredata.storage.connection._WORTH_A_LISTING", 4)
    assert firsts(open_many(prefixes, storage_options=options)) == [100 * n for n in range(12)]
    assert kinds(proxy) == (2, 12, 0)


def test_a_directory_full_of_other_things_is_not_listed_to_its_end(
    bucket, prefixes, options, proxy, monkeypatch
):
    for number in range(40):
        bucket.put(f"dir/w{number:03}", b"")
        bucket.put(f"dir/x1-{number:03}", b"")  # between x1 and x10 in the order of keys
    monkeypatch.setattr("coredata.storage.connection._PAGE", 10)
    proxy.clear()
    assert firsts(open_many(prefixes, storage_options=options)) == [100 * n for n in range(12)]
    listings, downloads, asked = kinds(proxy)
    assert (downloads, listings) == (12, 1)
    assert 12 <= asked < 24


def test_where_listing_is_forbidden_each_is_asked_for(prefixes, options, proxy):
    proxy.set(forbidden("list-type"))
    assert firsts(open_many(prefixes, storage_options=options)) == [100 * n for n in range(12)]
    assert kinds(proxy) == (1, 12, 24)


def test_over_http_each_is_asked_for(web, tmp_path):
    for number in range(8):
        write(str(web.root / f"x{number}"), number)
    options = {"coredata": {"copies": str(tmp_path / "copies")}}
    urls = [f"{web.url}/x{number}" for number in range(8)]
    assert firsts(open_many(urls, storage_options=options)) == list(range(8))
    assert web.proxy.counters().count("HEAD") == 16


def test_local_files_and_urls_together(prefixes, options, tmp_path, proxy):
    write(str(tmp_path / "near"), 7)
    assert firsts(open_many([str(tmp_path / "near"), prefixes[1]], storage_options=options)) == [
        7,
        100,
    ]
    proxy.clear()
    with prepared([str(tmp_path / "near")], options):
        pass
    assert proxy.counters().requests == ()
    assert open_many([]) == []


def test_nothing_is_remembered_afterwards(bucket, prefixes, options):
    with prepared(prefixes, options):
        size = open_reader(prefixes[0] + ".bin", storage_options=options).size
        write(prefixes[0], 7, bucket.direct)
        bucket.put("dir/x0.bin", b"another size")
        assert open_reader(prefixes[0] + ".bin", storage_options=options).size == size == 20
    assert open_reader(prefixes[0] + ".bin", storage_options=options).size == 12


def test_what_is_missing_or_broken_is_said_by_whoever_opens_it(bucket, prefixes, options):
    with pytest.raises(MissingFileError, match=r"dir/none\.bin and .*dir/none\.idx do not exist"):
        open_many([*prefixes, f"{bucket.url}/dir/none"], storage_options=options)
    bucket.put("dir/x3.idx", b"text, and nothing else")
    with pytest.raises(MagicError, match=r"x3\.idx is not an index file"):
        open_many(prefixes, storage_options=options)
    with prepared([*prefixes, f"{bucket.url}/dir/none"], options):
        assert len(IndexedDataset(prefixes[0], storage_options=options)) == 2


def test_storage_that_does_not_answer(prefixes, options, proxy):
    proxy.set(status(503))
    short = {**options, "coredata": {**options["coredata"], "deadline": 0.3}}
    with pytest.raises(StorageError, match=r"list s3://.*/dir: failed \d+ times"):
        open_many(prefixes, storage_options=short)


def test_other_storage_options_do_not_take_what_was_found(bucket, prefixes, options):
    service = read_service(read_options(options))
    other = {**options, "endpoint_url": bucket.direct["endpoint_url"]}
    with looked_up([prefixes[0] + ".idx"], options):
        known = service.open(prefixes[0] + ".idx", options)
        assert service.open(prefixes[0] + ".idx", options) is known
        assert service.open(prefixes[0] + ".idx", other) is not known
