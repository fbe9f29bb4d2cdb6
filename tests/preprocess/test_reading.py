"""Rows read many at a time are those that are read one at a time."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from coredata.preprocess import reading
from coredata.preprocess.plan import inspect_inputs, plan_shards
from coredata.preprocess.reading import ShardRows

TEXTS = st.text(max_size=6)  # lone surrogates too: as escapes
VALUES = st.one_of(TEXTS, st.lists(TEXTS, max_size=2), st.integers(), st.none())
USUAL = st.fixed_dictionaries({"a": TEXTS, "b": TEXTS})
LINES = st.one_of(
    USUAL.map(json.dumps).map(str.encode),
    USUAL.map(json.dumps).map(str.encode),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3)
    .map(json.dumps)
    .map(str.encode),
    st.sampled_from([b"", b" \r", b"\xef\xbb\xbf{}", b"[1]", b'"a"', b"{", b"\xff", b"NaN"]),
)


def read(path, keys, most_bytes, shard_bytes):
    """For each shard its rows and counts, and how many batches were of the usual kind."""
    found, usual = [], 0
    for shard in plan_shards(inspect_inputs([path], keys), shard_bytes):
        rows = ShardRows(shard, keys)
        of_shard = []
        for batch in rows.batches(most_bytes):
            one_by_one = batch.rows()
            if batch.texts is not None:
                usual += 1
                assert [row.texts for row in one_by_one] == list(zip(*batch.texts, strict=True))
                assert all(row.problem is None for row in one_by_one)
            of_shard += one_by_one
        found.append((of_shard, rows.counts(), rows.input_bytes))
    return found, usual


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@example([b'{"a": "x", "b": "y"}'] * 9, True, 30, 40, ["a", "b"])
@given(
    lines=st.lists(LINES, max_size=9),
    terminated=st.booleans(),
    most_bytes=st.integers(1, 120),
    shard_bytes=st.integers(1, 120),
    keys=st.sampled_from([["a"], ["a", "b"]]),
)
def test_the_same_rows_and_counts(
    tmp_path, monkeypatch, lines, terminated, most_bytes, shard_bytes, keys
):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n" * terminated)
    found, _ = read(str(path), keys, most_bytes, shard_bytes)
    with monkeypatch.context() as patch:
        patch.setattr(reading, "parse_all_quickly", lambda lines: None)
        expected, usual = read(str(path), keys, 1 << 20, shard_bytes)
    assert usual == 0
    assert found == expected


def test_usual_rows_are_not_read_one_by_one(tmp_path, monkeypatch):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a": "x"}\n' * 50 + b'{"a": ["y"]}\n' + b'{"a": "z"}\n' * 49)
    _, usual = read(str(path), ["a"], 100, 1 << 20)
    assert usual == 11  # of 12 batches
    monkeypatch.setattr(ShardRows, "_rows", lambda *_: pytest.fail("read one by one"))
    (shard,) = plan_shards(inspect_inputs([str(path)], ["a"]), 1 << 20)
    assert next(ShardRows(shard, ["a"]).batches(100)).texts == ([["x"]] * 9,)
