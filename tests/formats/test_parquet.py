import sys

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coredata.formats.parquet import ParquetRows, RowGroup
from coredata.formats.rows import DamagedFileError, RowError

TEXTS = ["one", "", "zwei ü", None, "漢字 🙂", "x" * 1000]


def write(path, table, **options) -> str:
    pq.write_table(table, path, **options)
    return str(path)


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
)
def test_strings(tmp_path, kind):
    table = pa.table({"text": pa.array(TEXTS, kind), "n": list(range(6))})
    path = write(tmp_path / "a.parquet", table, row_group_size=4)
    assert list(ParquetRows(path, ["text"])) == [{"text": text} for text in TEXTS]


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.string())])
def test_lists_of_strings(tmp_path, kind):
    values = [["a", "b"], [], None, ["", None]]
    path = write(tmp_path / "a.parquet", pa.table({"text": pa.array(values, kind)}))
    assert [row["text"] for row in ParquetRows(path, ["text"])] == values


def test_row_groups_are_read_by_themselves(tmp_path):
    table = pa.table({"text": [str(i) for i in range(10)], "other": ["y" * 1000] * 10})
    path = write(tmp_path / "a.parquet", table, row_group_size=3, compression="none")
    groups = ParquetRows(path, ["text"]).row_groups()
    assert [group.rows for group in groups] == [3, 3, 3, 1]
    assert all(isinstance(group, RowGroup) and group.stored_bytes < 500 for group in groups)
    found = [row["text"] for row in ParquetRows(path, ["text"], 1, 3)]
    assert found == ["3", "4", "5", "6", "7", "8"]


def test_only_the_columns_asked_for(tmp_path):
    path = write(tmp_path / "a.parquet", pa.table({"a": ["x"], "b": ["y"], "c": ["z"]}))
    assert list(ParquetRows(path, ["c", "a"])) == [{"c": "z", "a": "x"}]


def test_no_rows(tmp_path):
    path = write(tmp_path / "a.parquet", pa.table({"text": pa.array([], pa.string())}))
    assert list(ParquetRows(path, ["text"])) == []


def test_memory_url():
    with fsspec.open("memory://rows/a.parquet", "wb") as file:
        pq.write_table(pa.table({"text": ["a", "b"]}), file)
    assert list(ParquetRows("memory://rows/a.parquet", ["text"])) == [{"text": "a"}, {"text": "b"}]


def test_missing_column(tmp_path):
    path = write(tmp_path / "a.parquet", pa.table({"content": ["a"], "n": [1]}))
    with pytest.raises(ValueError, match=r'a.parquet has no column "text"; it has "content", "n"$'):
        ParquetRows(path, ["text"]).row_groups()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1], "int64"),
        ([b"a"], "binary"),
        ([[1]], "list<.*int64>"),
        ([{"a": "b"}], "struct"),
        ([[["a"]]], "list<.*list"),
    ],
)
def test_columns_without_text(tmp_path, values, kind):
    path = write(tmp_path / "a.parquet", pa.table({"text": values}))
    with pytest.raises(ValueError, match=rf'column "text" is of type {kind}.*; strings or lists'):
        list(ParquetRows(path, ["text"]))


def test_bad_utf_8_is_the_fault_of_one_row(tmp_path):
    raw = pa.array([b"good", b"b\xff", b"also good"], pa.binary())
    path = write(tmp_path / "a.parquet", pa.table({"text": raw.view(pa.string())}))
    found = [row for row, _ in ParquetRows(path, ["text"]).rows()]
    assert found[0] == {"text": "good"}
    assert isinstance(found[1], RowError)
    assert str(found[1]) == "not UTF-8: byte 0xff, 1 bytes into the text (invalid start byte)"
    assert found[2] == {"text": "also good"}
    with pytest.raises(RowError, match="not UTF-8"):
        list(ParquetRows(path, ["text"]))


def test_no_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b'{"text": "a"}\n')
    with pytest.raises(DamagedFileError, match=r"a.parquet: this is no intact parquet file \("):
        list(ParquetRows(str(path), ["text"]))


def test_damaged_pages(tmp_path):
    table = pa.table({"text": [f"text {i}" for i in range(1000)]})
    path = write(tmp_path / "a.parquet", table, compression="zstd", use_dictionary=False)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[30:400] = bytes(370)
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(DamagedFileError, match="this is no intact parquet file"):
        list(ParquetRows(path, ["text"]))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_checksums_of_pages_are_checked(tmp_path, version):
    table = pa.table({"text": [f"text {i}" for i in range(100)]})
    options = {"compression": "none", "use_dictionary": False, "data_page_version": version}
    path = write(
        tmp_path / "a.parquet", table, row_group_size=30, write_page_checksum=True, **options
    )
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data.replace(b"text 72", b"texv 72", 1))
    rows = ParquetRows(path, ["text"])
    assert [group.rows for group in rows.row_groups()] == [30, 30, 30, 10]
    match = r"a\.parquet, row group 2 \(from 0\): .*CRC checksum verification failed.* Fetch or"
    with pytest.raises(DamagedFileError, match=match):
        list(rows)
    assert len(list(ParquetRows(path, ["text"], 0, 2))) == 60
    with pytest.raises(DamagedFileError, match=match):
        list(ParquetRows(path, ["text"], 2, 3))


def test_without_pyarrow(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", pa.table({"text": ["a"]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'coredata\[parquet\]'"):
        list(ParquetRows(path, ["text"]))


def test_with_a_broken_pyarrow(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", pa.table({"text": ["a"]}))
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text("raise ImportError('libarrow.so: no')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    told = (
        r"a\.parquet needs the package pyarrow, which is .* \(libarrow\.so: no\); pip install --fo"
    )
    with pytest.raises(ImportError, match=told):
        list(ParquetRows(path, ["text"]))
