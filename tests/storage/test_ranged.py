"""Reading objects by ranges: the bytes, the requests made for them, and the memory they take."""

import pickle
import threading
import time
import uuid

import fsspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coredata.storage import RangedObject, StorageError, open_reader
from coredata.storage.service import read_service
from coredata.testing.fault_proxy import delay, ignored_range

CONTENT = np.random.default_rng(5).integers(0, 256, 300_000, np.uint8).tobytes()
SMALL = {"memory": 1 << 20}


@pytest.fixture(params=["memory", "web", "s3"])
def place(request):
    """A function that stores bytes and gives URL and storage options."""
    if request.param == "memory":

        def store(content):
            fsspec.filesystem("memory").pipe("/ranged/x", content)
            return "memory://ranged/x", {}

    elif request.param == "web":
        web = request.getfixturevalue("web")

        def store(content):
            (web.root / "x").write_bytes(content)
            return f"{web.url}/x", {}

    else:
        bucket = request.getfixturevalue("bucket")

        def store(content):
            return bucket.put("x", content), bucket.options

    return store


def gather(reader, offsets, lengths):
    offsets, lengths = np.array(offsets, np.int64), np.array(lengths, np.int64)
    out = np.full(int(lengths.sum()), 77, np.uint8)
    reader.read_ranges(offsets, lengths, out, np.cumsum(lengths) - lengths)
    return out.tobytes()


def expected(offsets, lengths):
    return b"".join(CONTENT[a : a + n] for a, n in zip(offsets, lengths, strict=True))


def unique(**options):
    """Options that no other test shares a cache with."""
    return {"coredata": {"disk_bytes": uuid.uuid4().int, **options}}


def settled(reader):
    """The counters once nothing is under way any more."""
    for _ in range(500):
        before = reader.counters
        time.sleep(0.01)
        if reader.counters == before and not reader._service()._coming:
            return before
    raise AssertionError("requests do not end")


def test_bytes(place):
    url, options = place(CONTENT)
    reader = RangedObject(url, {**options, **unique()})
    assert reader.size == len(CONTENT)
    assert reader.view() is None
    offsets, lengths = [5000, 0, 299_990, 70_000, 5050], [100, 1, 10, 0, 70_000]
    assert gather(reader, offsets, lengths) == expected(offsets, lengths)
    assert bytes(reader.read(12_345, 678)) == CONTENT[12_345 : 12_345 + 678]
    reader.close()
    assert bytes(reader.read(1, 2)) == CONTENT[1:3]


def test_an_empty_object(place):
    url, options = place(b"")
    reader = RangedObject(url, {**options, **unique()})
    assert reader.size == 0
    assert bytes(reader.read(0, 0)) == b""


def test_an_object_that_is_missing(place):
    url, options = place(CONTENT)
    with pytest.raises(FileNotFoundError, match=r"none: there is no such object"):
        RangedObject(url.replace("x", "none"), {**options, **unique()}).read(0, 1)


@pytest.mark.parametrize("ahead", [False, True])
def test_one_request_for_each_merged_range(web, ahead):
    (web.root / "x").write_bytes(CONTENT)
    reader = RangedObject(f"{web.url}/x", unique(gap=100, waste=1.0))
    offsets, lengths = [100_000, 5000, 5600, 5150], [200, 100, 300, 400]
    if ahead:
        reader.prefetch(np.array(offsets), np.array(lengths))
        settled(reader)
    assert gather(reader, offsets, lengths) == expected(offsets, lengths)
    asked = [r.range for r in web.proxy.counters().requests if r.method == "GET"]
    assert sorted(asked) == ["bytes=100000-100199", "bytes=5000-5899"]
    counters = settled(reader)
    assert (counters.requests, counters.bytes_fetched, counters.bytes_used) == (2, 1100, 1000)
    assert (counters.hits, counters.waits) == ((4, 0) if ahead else (0, 4))
    web.proxy.clear()
    assert gather(reader, offsets, lengths) == expected(offsets, lengths)
    assert web.proxy.counters().requests == ()


def test_only_what_is_not_in_memory_is_fetched(web):
    (web.root / "x").write_bytes(CONTENT)
    reader = RangedObject(f"{web.url}/x", unique())
    reader.read(1000, 1000)
    web.proxy.clear()
    assert gather(reader, [500, 1200], [1000, 2000]) == expected([500, 1200], [1000, 2000])
    asked = [r.range for r in web.proxy.counters().requests]
    assert sorted(asked) == ["bytes=2000-3199", "bytes=500-999"]


def test_requests_of_a_read_run_together(web):
    (web.root / "x").write_bytes(CONTENT)
    reader = RangedObject(f"{web.url}/x", unique(gap=0))
    assert reader.size
    web.proxy.set(delay(0.2))
    begun = time.monotonic()
    gather(reader, list(range(0, 32_000, 2000)), [10] * 16)
    assert time.monotonic() - begun < 1.5
    assert web.proxy.counters().most_at_once >= 8


def test_files_share_one_budget(web):
    readers = []
    options = unique(**SMALL)
    for name in "abcd":
        (web.root / name).write_bytes(CONTENT)
        readers.append(RangedObject(f"{web.url}/{name}", options))
    for _ in range(2):
        for reader in readers:
            assert gather(reader, range(0, 300_000, 10_000), [10_000] * 30) == CONTENT
            assert reader.counters.held <= 1 << 20
    assert readers[0].counters.evicted > 0
    assert readers[0].counters == readers[3].counters


def test_a_read_larger_than_the_memory(web):
    content = CONTENT * 10
    (web.root / "x").write_bytes(content)
    reader = RangedObject(f"{web.url}/x", unique(**SMALL))
    assert bytes(reader.read(0, len(content))) == content
    assert reader.counters.held <= 1 << 20
    assert reader.counters.bytes_fetched == len(content)


def test_hints_that_find_no_room_wait_and_are_used_in_turn(web):
    content = CONTENT * 10
    (web.root / "x").write_bytes(content)
    reader = RangedObject(f"{web.url}/x", unique(**SMALL))
    batches = [(np.arange(4) * 700_000 + i * 50_000, np.full(4, 50_000)) for i in range(14)]
    for offsets, lengths in batches:
        reader.prefetch(offsets, lengths)
    assert settled(reader).held <= 1 << 20
    for offsets, lengths in batches:
        wanted = b"".join(content[a : a + n] for a, n in zip(offsets, lengths, strict=True))
        assert gather(reader, offsets, lengths) == wanted
        assert reader.counters.held <= 1 << 20
    counters = settled(reader)
    assert counters.bytes_fetched == counters.bytes_used == 14 * 200_000


def test_looking_ahead_goes_on_after_a_jump(web):
    content = CONTENT * 10
    (web.root / "x").write_bytes(content)
    reader = RangedObject(f"{web.url}/x", unique(**SMALL))
    for i in range(14):  # hints for what is never read fill what there is for looking ahead
        reader.prefetch(np.array([i * 100_000]), np.array([100_000]))
    settled(reader)
    ahead = [(1_500_000 + i * 50_000, 50_000) for i in range(23, -1, -1)]  # not front to back
    for offset, length in ahead[:4]:
        reader.prefetch(np.array([offset]), np.array([length]))
    for number, (offset, length) in enumerate(ahead):
        if number + 4 < len(ahead):
            reader.prefetch(np.array([ahead[number + 4][0]]), np.array([length]))
        assert bytes(reader.read(offset, length)) == content[offset : offset + length]
        settled(reader)
    assert reader.counters.hits >= 16


def test_a_hint_beyond_the_end_is_cut(place):
    url, options = place(CONTENT)
    reader = RangedObject(url, {**options, **unique()})
    reader.prefetch(np.array([299_000, 400_000, -5]), np.array([5000, 10, 10]))
    assert settled(reader).bytes_fetched == 1005


def test_a_hint_larger_than_the_memory_is_taken_as_far_as_it_fits(web):
    (web.root / "x").write_bytes(CONTENT * 10)
    reader = RangedObject(f"{web.url}/x", unique(**SMALL))
    reader.prefetch(np.arange(30) * 100_000, np.full(30, 100_000))
    counters = settled(reader)
    assert 0 < counters.bytes_fetched <= (1 << 20) * 3 // 4


def test_a_file_read_from_front_to_back_is_fetched_ahead(web):
    (web.root / "x").write_bytes(CONTENT)
    reader = RangedObject(f"{web.url}/x", unique())
    read = b"".join(bytes(reader.read(at, 1000)) for at in range(0, 300_000, 1000))
    assert read == CONTENT
    assert reader.counters.requests < 12
    assert reader.counters.bytes_fetched == len(CONTENT)


def test_random_reads_fetch_nothing_else(web):
    (web.root / "x").write_bytes(CONTENT)
    reader = RangedObject(f"{web.url}/x", unique())
    for offset in (5000, 100_000, 90_000, 200):
        reader.read(offset, 100)
    assert settled(reader).bytes_fetched == 400


RANGE = st.tuples(st.integers(0, 299_000), st.integers(0, 9_000))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.booleans(), st.lists(st.tuples(st.integers(0, 299_000), st.integers(0, 9_000)))
        ),
        max_size=8,
    )
)
def test_any_mixture_of_hints_and_reads_gives_the_bytes(calls):
    fsspec.filesystem("memory").pipe("/ranged/any", CONTENT)
    reader = RangedObject("memory://ranged/any", {"coredata": SMALL})
    for hint, ranges in calls:
        offsets = [a for a, _ in ranges]
        lengths = [min(n, len(CONTENT) - a) for a, n in ranges]
        if hint:
            reader.prefetch(np.array(offsets, np.int64), np.array(lengths, np.int64))
        else:
            assert gather(reader, offsets, lengths) == expected(offsets, lengths)
        assert reader.counters.held <= 1 << 20


def test_many_threads_get_the_right_bytes_within_the_budget():
    fsspec.filesystem("memory").pipe("/ranged/threads", CONTENT)
    reader = RangedObject("memory://ranged/threads", unique(**SMALL))
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            offsets = rng.integers(0, 290_000, 8)
            lengths = rng.integers(0, 10_000, 8)
            reader.prefetch(rng.integers(0, 290_000, 8), lengths)
            if gather(reader, offsets, lengths) != expected(offsets, lengths):
                wrong.append(offsets)
            if reader.counters.held > 1 << 20:
                wrong.append(reader.counters)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_nothing_starts_before_the_first_read():
    before = set(threading.enumerate())  # some may end by themselves meanwhile
    reader = open_reader("s3://nowhere/x", storage_options=unique())
    pickle.loads(pickle.dumps(reader))
    assert set(threading.enumerate()) <= before


def test_equal_options_share_a_service_and_others_do_not():
    options = {"coredata": {"gap": 123}}
    one, two = RangedObject("memory://a", options), RangedObject("memory://b", options)
    assert one._service() is two._service()
    assert one._service() is not RangedObject("memory://a")._service()
    assert read_service(one._options) is one._service()


def test_a_directory_is_no_object():
    fsspec.filesystem("memory").pipe("/ranged/directory/x", b"x")
    with pytest.raises(FileNotFoundError, match="is a directory, and an object was expected"):
        RangedObject("memory://ranged/directory").read(0, 1)


def test_a_server_that_ignores_ranges(web):
    (web.root / "x").write_bytes(CONTENT)
    reader = RangedObject(f"{web.url}/x", unique())
    web.proxy.set(ignored_range())
    with pytest.raises(StorageError, match=r"bytes 5 … 14 of http.*seems to ignore ranges"):
        reader.read(5, 10)
