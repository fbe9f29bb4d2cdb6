"""Rows behind URLs, fetched before they are read: JSON lines, JSON arrays, parquet."""

import json
import time
import uuid

import fsspec
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from coredata.datasets import VarlenDataset, VarlenDatasetConfig
from coredata.formats import JoinedRows, JsonLinesSource, ParquetSource, open_rows
from coredata.indices import Split
from coredata.loading import BatchLoader
from coredata.sampling import GlobalBatchSampler
from coredata.storage import RangedObject
from coredata.text import ByteTokenizer

RANDOM = np.random.default_rng(4)
ROWS = [{"text": f"row {i} " + "x" * (i % 40), "more": RANDOM.bytes(500).hex()} for i in range(400)]


def options():
    return {"coredata": {"disk_bytes": uuid.uuid4().int, "gap": 0}}


def store(kind, name="a"):
    url = f"memory://ahead/{name}.{kind}"
    with fsspec.open(url, "wb") as file:
        if kind == "parquet":
            pyarrow.parquet.write_table(
                pyarrow.Table.from_pylist(ROWS), file, row_group_size=50, compression="none"
            )
        elif kind == "json":
            file.write(json.dumps(ROWS, indent=1).encode())
        else:
            file.write(b"".join(json.dumps(row).encode() + b"\n\n" for row in ROWS))
    return url


def counters(url, given):
    """The counters once nothing is under way any more."""
    reader = RangedObject(url, given)
    quiet, before = 0, reader.counters
    for _ in range(500):
        time.sleep(0.005)
        quiet = quiet + 1 if reader.counters == before else 0
        if quiet == 10:
            return before
        before = reader.counters
    raise AssertionError("requests do not end")


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_rows_told_of_are_there_when_they_are_read(kind):
    url, given = store(kind), options()
    source = open_rows(url, storage_options=given)
    rows = np.array([390, 3, 120, 77])
    opened = counters(url, given)
    source.prefetch(rows)
    before = counters(url, given)
    assert before.requests > opened.requests
    assert [source[row] for row in rows.tolist()] == [ROWS[row] for row in rows.tolist()]
    after = counters(url, given)
    assert after.requests == before.requests
    assert after.waits == before.waits


def test_only_the_columns_wanted_of_the_row_groups_wanted():
    url, given = store("parquet"), options()
    source = ParquetSource(url, storage_options=given).narrowed(["text"])
    before = counters(url, given).bytes_fetched
    source.prefetch(np.array([60, 61]))
    fetched = counters(url, given).bytes_fetched - before
    assert 50 * 25 < fetched < 50 * 60  # one group of 50 rows; a row of "more" has 1000 bytes
    assert source[61] == {"text": ROWS[61]["text"]}
    assert counters(url, given).bytes_fetched - before == fetched
    source.prefetch(np.array([70]))  # that group is in memory
    assert counters(url, given).bytes_fetched - before == fetched


def test_rows_that_do_not_exist_are_left_out():
    for kind in ("jsonl", "parquet"):
        source = open_rows(store(kind), storage_options=options())
        source.prefetch(np.array([-1, 400, 10**9]))
        source.prefetch(np.empty(0, np.int64))


def test_joined_sources_are_told_of_their_own_rows():
    urls, given = [store("jsonl", "a"), store("jsonl", "b")], options()
    joined = JoinedRows([JsonLinesSource(url, storage_options=given) for url in urls], "both")
    opened = counters(urls[0], given).requests
    joined.prefetch(np.array([5, 405, 900, -3]))
    assert counters(urls[0], given).requests == opened + 2
    assert [joined[5], joined[405]] == [ROWS[5], ROWS[5]]
    assert counters(urls[0], given).requests == opened + 2


def test_local_files_need_no_hints(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "x"}\n')
    JsonLinesSource(str(tmp_path / "a.jsonl")).prefetch(np.array([0]))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    ParquetSource(str(tmp_path / "a.parquet")).prefetch(np.array([0]))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_loader_of_rows_looks_ahead(kind):
    url, given = store(kind), options()
    config = VarlenDatasetConfig(
        random_seed=1,
        sequence_length=64,
        blend=([url], None),
        split="1",
        tokenizer=ByteTokenizer(),
        storage_options=given,
    )
    source = VarlenDataset.build_low_level_dataset(url, config)
    shuffled = np.random.default_rng(0).permutation(400)
    dataset = VarlenDataset(source, url, shuffled, None, Split.train, config)
    before = counters(url, given)
    with BatchLoader(dataset, GlobalBatchSampler(400, 0, 8), look_ahead=4) as loader:
        found = [tokens[:6].astype(np.uint8) for batch in loader for tokens in batch["tokens"]]
    expected = [ROWS[row]["text"].encode()[:6] for row in shuffled.tolist()]
    assert [text.tobytes() for text in found] == expected
    after = counters(url, given)
    assert after.hits - before.hits > 4 * (after.waits - before.waits)
    assert after.retries == 0
