import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.formats.parquet import RowGroup
from coredata.preprocess.plan import (
    InputFile,
    Shard,
    default_shard_bytes,
    inspect_inputs,
    plan_shards,
)

GROUPS = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 500)), max_size=6)
FILES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["a.jsonl", "a.jsonl.gz"]), st.integers(0, 1000), st.just([])),
        st.tuples(st.just("a.parquet"), st.integers(0, 999), GROUPS),
    ),
    max_size=5,
)


@given(files=FILES, shard_bytes=st.integers(1, 300))
def test_shards_cover_every_file_once_and_in_order(files, shard_bytes):
    files = [
        InputFile(path, size, "", tuple(RowGroup(*group) for group in groups))
        for path, size, groups in files
    ]
    shards = plan_shards(files, shard_bytes)
    assert [shard.index for shard in shards] == list(range(len(shards)))
    assert [shard.file for shard in shards] == sorted(shard.file for shard in shards)
    for number, file in enumerate(files):
        own = [shard for shard in shards if shard.file == number]
        if file.path.endswith(".gz"):
            assert len(own) == 1
            assert all((shard.start, shard.end) == (0, None) for shard in own)
            continue
        whole = len(file.row_groups) if file.path.endswith(".parquet") else file.size
        edges = [0, *(shard.end for shard in own)]
        assert [shard.start for shard in own] == edges[:-1]
        assert edges[-1] == whole
        if file.path.endswith(".parquet"):
            groups = file.row_groups
            for shard in own:
                assert shard.first_row == sum(group.rows for group in groups[: shard.start])
                stored = [group.stored_bytes for group in groups[shard.start : shard.end]]
                assert shard.input_bytes == sum(stored)
                assert sum(stored[:-1]) < shard_bytes
        else:
            assert all(0 < shard.input_bytes <= shard_bytes for shard in own)


@pytest.mark.parametrize(
    ("total", "workers", "expected"),
    [(0, 1, 1 << 20), (100 << 20, 1, 25 << 20), (10 << 30, 4, 64 << 20), (100 << 20, 8, 3276800)],
)
def test_default_size(total, workers, expected):
    assert default_shard_bytes([InputFile("a", total, "")], workers) == expected


def test_stamps_tell_a_rewritten_file(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}\n", mtime=0))
    first = inspect_inputs(str(path), ["text"])
    assert inspect_inputs(str(path), ["text"]) == first
    path.write_bytes(gzip.compress(b"{}\n\n", mtime=0))
    assert inspect_inputs(str(path), ["text"]) != first


def test_shards_in_words():
    assert Shard(3, 0, "a.jsonl", 5, 9, 0, 4).describe() == "shard 3 (a.jsonl, bytes 5 to 9)"
    assert Shard(0, 0, "a.gz", 0, None, 0, 4).describe() == "shard 0 (a.gz, from byte 0)"
    assert Shard(1, 0, "a.pq", 2, 4, 9, 4).describe() == "shard 1 (a.pq, row groups 2 to 4)"
