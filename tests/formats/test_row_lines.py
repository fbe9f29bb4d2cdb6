"""Rows of JSON-lines files by number."""

import gzip
import json
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import fsspec
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.formats.row_index import LineIndex, index_lines
from coredata.formats.row_source_lines import JsonLinesSource
from coredata.formats.rows import RowError

ROWS = [{"text": f"row {i} ü", "n": i} for i in range(7)]


def write(path, lines) -> str:
    path.write_bytes(b"".join(lines))
    return str(path)


def as_lines(rows):
    return [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]


def read_backwards(source):
    return [source[row] for row in range(len(source) - 1, -1, -1)][::-1]


def test_rows_in_any_order_and_their_lines(tmp_path):
    lines = as_lines(ROWS)
    lines[2:2] = [b"\n", b"  \r\n"]
    path = write(tmp_path / "a.jsonl", [b"\xef\xbb\xbf", *lines[:-1], lines[-1].rstrip(b"\n")])
    for mmap in (True, False):
        source = JsonLinesSource(path, mmap=mmap)
        assert read_backwards(source) == ROWS
        assert source.columns == ("n", "text")
    assert [source.where(row).rsplit(" ", 1)[1] for row in range(7)] == list("1256789")
    assert (len(source), source.skipped) == (7, 0)
    identity = source.identity()
    assert (identity["name"], identity["rows"]) == ("a.jsonl", 7)


@settings(deadline=None)
@given(st.lists(st.sampled_from([b'{"a": 1}', b"", b" ", b"bad", b'{"b": 2}\r']), max_size=12))
def test_the_index_equals_a_plain_twin(tmp_path_factory, lines):
    path = write(tmp_path_factory.mktemp("x") / "a.jsonl", [line + b"\n" for line in lines])
    good = [n for n, line in enumerate(lines, start=1) if line.startswith(b"{")]
    index = index_lines(path, skip_bad_rows=True)
    assert [index.line_number(row) for row in range(len(index))] == good
    assert index.skipped == lines.count(b"bad")
    offsets = np.cumsum([0, *(len(line) + 1 for line in lines)])
    np.testing.assert_array_equal(index.starts[:-1], offsets[[n - 1 for n in good]])
    source = JsonLinesSource(path, skip_bad_rows=True)
    assert read_backwards(source) == [json.loads(lines[n - 1]) for n in good]
    again = LineIndex.of_arrays(index.arrays())
    assert (again.columns, again.skipped) == (index.columns, index.skipped)


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_compressed_files(tmp_path, ending):
    content = b"\n".join(as_lines(ROWS)) + b'{"text": "last"}'
    pack = gzip.compress if ending == "gz" else zstandard.ZstdCompressor().compress
    path = write(tmp_path / f"a.json.{ending}", [pack(content)])
    source = JsonLinesSource(path)
    assert read_backwards(source) == [*ROWS, {"text": "last"}]
    copy = pickle.loads(pickle.dumps(source))
    assert copy[3] == ROWS[3]
    assert copy.where(7) == f"{path}, line 14"


def test_columns_are_the_union_over_rows(tmp_path):
    path = write(tmp_path / "a.jsonl", as_lines([{"a": 1}, {}, {"b": 2, "a": 3}]))
    assert JsonLinesSource(path).columns == ("a", "b")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "cut o', r"a\.jsonl, line 2, byte 13: not JSON: Unterminated string"),
        (b'"text"', r"line 2, byte 13: a string, not an object"),
        (b'{"text": "\xff"}', r"line 2, byte 13: not UTF-8: byte 0xff, 10 bytes into the line"),
    ],
)
def test_a_bad_line_is_an_error_or_left_out_and_counted(tmp_path, line, message):
    path = write(tmp_path / "a.jsonl", [b'{"text": ""}\n', line + b"\n", b'{"text": "b"}\n'])
    with pytest.raises(RowError, match=message) as error:
        JsonLinesSource(path)
    assert "skip_bad_rows=True" in str(error.value)
    source = JsonLinesSource(path, skip_bad_rows=True)
    assert (len(source), source.skipped) == (2, 1)
    assert source[1] == {"text": "b"}
    assert source.where(1) == f"{path}, line 3"


def test_a_file_that_was_cut_off(tmp_path):
    path = write(tmp_path / "a.jsonl", [b'{"text": ""}\n', b'{"text": "b'])
    with pytest.raises(RowError, match="the file ends here without a newline: cut off"):
        JsonLinesSource(path)


def test_an_empty_file_has_no_rows(tmp_path):
    source = JsonLinesSource(write(tmp_path / "a.jsonl", []))
    assert (len(source), source.columns) == (0, ())
    with pytest.raises(IndexError, match=r"row 0 was asked of .*a\.jsonl, which has 0"):
        source[0]


def test_rows_outside_are_refused(tmp_path):
    source = JsonLinesSource(write(tmp_path / "a.jsonl", as_lines(ROWS)))
    for row in (-1, 7):
        with pytest.raises(IndexError, match=f"row {row} was asked of .* which has 7"):
            source[row]


def test_a_file_that_changes_is_noticed(tmp_path):
    path = tmp_path / "a.jsonl"
    source = JsonLinesSource(write(path, as_lines(ROWS)), mmap=False)
    write(path, [b"x" * 200])
    with pytest.raises(RowError, match=r"line 3: not JSON.* another row when the file was indexed"):
        source[2]


def test_urls_are_read_by_ranges(tmp_path, monkeypatch):
    url = "memory://rows/a.jsonl"
    with fsspec.open(url, "wb") as file:
        file.write(b"".join(as_lines(ROWS)))
    source = JsonLinesSource(url)
    asked = []
    memory = type(fsspec.filesystem("memory"))
    real = memory.cat_file

    def cat_file(self, key, start=None, end=None):
        asked.append((start, end))
        return real(self, key, start, end)

    monkeypatch.setattr(memory, "cat_file", cat_file)
    assert read_backwards(source) == ROWS
    assert max(end - start for start, end in asked) < 50


def read_in_child(source, rows):
    return [source[row] for row in rows]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_other_processes_and_threads(tmp_path, ending):
    content = b"".join(as_lines(ROWS))
    path = write(tmp_path / f"a.jsonl{ending}", [gzip.compress(content) if ending else content])
    source = JsonLinesSource(path, mmap=False)
    assert source[0] == ROWS[0]
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(read_in_child, (source, [5, 1])) == [ROWS[5], ROWS[1]]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(source.__getitem__, [0, 6, 3] * 20)) == [
            ROWS[i] for i in [0, 6, 3] * 20
        ]


def test_a_row_of_many_megabytes(tmp_path):
    text = "x" * (8 << 20)
    path = write(tmp_path / "a.jsonl", as_lines([{"text": "a"}, {"text": text}, {"text": "b"}]))
    source = JsonLinesSource(path)
    assert len(source[1]["text"]) == len(text)
    assert source[2] == {"text": "b"}
