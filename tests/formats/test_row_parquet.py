"""Rows of parquet files by number."""

import multiprocessing
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coredata.formats.row_source_parquet import ParquetSource
from coredata.formats.rows import DamagedFileError, RowError

TURNS = [
    [{"role": "user", "content": f"q{i}"}, {"role": "assistant", "content": None}]
    for i in range(10)
]
ROWS = [{"messages": turns, "n": i} for i, turns in enumerate(TURNS)]


def write(path, table=None, **options) -> str:
    table = pa.Table.from_pylist(ROWS) if table is None else table
    pq.write_table(table, path, **{"row_group_size": 3, **options})
    return str(path)


def test_rows_in_any_order(tmp_path):
    source = ParquetSource(write(tmp_path / "a.parquet"), groups=1)
    for row in (9, 0, 3, 2, 8, 5, 5):
        assert source[row] == ROWS[row]
    assert (source.columns, len(source), source.skipped) == (("messages", "n"), 10, 0)
    assert source.where(4).endswith("a.parquet, row 4")
    assert {k: v for k, v in source.identity().items() if k != "bytes"} == {
        "name": "a.parquet",
        "rows": 10,
    }


def test_few_row_groups_are_kept(tmp_path):
    source = ParquetSource(write(tmp_path / "a.parquet"), groups=2)
    for row in (0, 3, 0, 6):
        source[row]
    assert sorted(source._tables) == [0, 2]


def test_only_the_columns_asked_for_are_read(tmp_path):
    source = ParquetSource(write(tmp_path / "a.parquet")).narrowed(["n", "text"])
    assert source.columns == ("n",)
    assert source[4] == {"n": 4}
    with pytest.raises(ValueError, match=r"a\.parquet has no column text; it has messages, n"):
        ParquetSource(source.path, columns=["text"])


def read_in_child(source):
    return source[7]


def read_after_fork(source, answers):
    before = source._file
    answers.put((source[7], source._file is before))


def test_a_forked_process_opens_the_file_anew(tmp_path):
    source = ParquetSource(write(tmp_path / "a.parquet"), groups=1)
    assert source[0] == ROWS[0]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=read_after_fork, args=(source, answers))
    child.start()
    assert answers.get(timeout=60) == (ROWS[7], False)
    child.join()


def test_other_processes_and_threads(tmp_path):
    source = ParquetSource(write(tmp_path / "a.parquet"), groups=1)
    assert source[0] == ROWS[0]
    assert pickle.loads(pickle.dumps(source.narrowed(["n"])))[1] == {"n": 1}
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(read_in_child, (source,)) == ROWS[7]
    with ThreadPoolExecutor(4) as threads:
        rows = [9, 0, 5] * 10
        assert list(threads.map(source.__getitem__, rows)) == [ROWS[row] for row in rows]


def test_a_url(tmp_path):
    with fsspec.open("memory://rows/a.parquet", "wb") as file:
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    assert ParquetSource("memory://rows/a.parquet")[3] == ROWS[3]


def test_no_rows(tmp_path):
    source = ParquetSource(
        write(tmp_path / "a.parquet", pa.table({"text": pa.array([], "string")}))
    )
    assert (len(source), source.columns) == (0, ("text",))
    with pytest.raises(IndexError, match=r"row 0 was asked of .* which has 0"):
        source[0]


def test_broken_files_are_named(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(DamagedFileError, match=r"a\.parquet: this is no intact parquet file"):
        ParquetSource(str(path))
    content = bytearray(
        (tmp_path / "b.parquet").read_bytes() if write(tmp_path / "b.parquet") else b""
    )
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="no intact parquet file"):
        ParquetSource(str(path))[0]


def test_checksums_of_pages_are_checked(tmp_path):
    table = pa.table({"text": [f"text {i}" for i in range(10)], "n": list(range(10))})
    path = write(
        tmp_path / "a.parquet",
        table,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data.replace(b"text 4", b"texv 4", 1))
    source = ParquetSource(path)
    assert source[8] == {"n": 8, "text": "text 8"}
    match = r"a\.parquet, row group 1 \(from 0\): .*CRC checksum verification failed.* Fetch or"
    with pytest.raises(DamagedFileError, match=match):
        source[3]
    assert source.narrowed(["n"])[3] == {"n": 3}


def test_text_that_is_not_utf8(tmp_path):
    raw = pa.StringArray.from_buffers(
        2, pa.py_buffer(b"\0\0\0\0\4\0\0\0\6\0\0\0"), pa.py_buffer(b"gooda\xff")
    )
    source = ParquetSource(write(tmp_path / "a.parquet", pa.table({"text": raw})))
    assert source[0] == {"text": "good"}
    with pytest.raises(RowError, match=r"a\.parquet, row 1: not UTF-8: byte 0xff, 1 bytes into"):
        source[1]


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs the package pyarrow; pip install 'core"):
        ParquetSource(path)


def test_at_least_one_group_is_kept(tmp_path):
    with pytest.raises(ValueError, match="groups: got 0, need at least 1"):
        ParquetSource(write(tmp_path / "a.parquet"), groups=0)
