"""Files that are one JSON array."""

import gzip
import io
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.formats.row_array import array_elements, scan_array
from coredata.formats.row_index import LineIndex, index_lines
from coredata.formats.row_source_lines import JsonLinesSource
from coredata.formats.rows import DamagedFileError, RowError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('"\\[]{},ü\n', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k"{', max_size=2), inner),
    max_leaves=6,
)
OBJECTS = st.lists(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3), max_size=5)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    state = np.zeros(4, np.int64)
    scan_array(np.frombuffer(b"[]", np.uint8), state, np.empty(2, np.int64), np.empty(2, np.int64))


def write(tmp_path, content, name="a.json"):
    path = tmp_path / name
    path.write_bytes(content)
    return str(path)


@settings(deadline=None)
@given(OBJECTS, st.sampled_from([None, 1]), st.integers(1, 40), st.booleans())
def test_elements_equal_what_json_says(rows, indent, piece, ascii_only):
    content = (
        "\ufeff \n" + json.dumps(rows, indent=indent, ensure_ascii=ascii_only) + "\n"
    ).encode()
    file = io.BytesIO(content)
    elements = list(array_elements(lambda length: file.read(piece), "x"))
    assert [json.loads(element.data) for element in elements] == rows
    assert all(element.complete for element in elements)
    for element in elements:
        assert content[element.offset :].startswith(element.data)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_rows_of_an_array(tmp_path, ending):
    rows = [{"text": f"[{i}] " + "ü{" * i, "n": [i]} for i in range(9)]
    content = json.dumps(rows, indent=2, ensure_ascii=False).encode()
    path = write(tmp_path, gzip.compress(content) if ending else content, f"a.json{ending}")
    source = JsonLinesSource(path)
    assert [source[row] for row in range(8, -1, -1)] == rows[::-1]
    assert (source.columns, len(source)) == (("n", "text"), 9)
    assert source.where(8) == f"{path}, element 9"
    assert pickle.loads(pickle.dumps(source))[4] == rows[4]
    again = LineIndex.of_arrays(source.index.arrays())
    assert (again.is_array, again.line_number(3)) == (True, 4)


def test_an_array_larger_than_a_chunk(tmp_path):
    rows = [{"text": "x" * 700_000, "n": i} for i in range(5)]
    path = write(tmp_path, json.dumps(rows).encode())
    source = JsonLinesSource(path)
    assert [source[row]["n"] for row in range(5)] == list(range(5))
    assert {len(source[row]["text"]) for row in range(5)} == {700_000}


def test_an_array_that_was_cut_off(tmp_path):
    path = write(tmp_path, b'[{"a": 1}, {"a": 2}, {"a": "thr')
    with pytest.raises(
        RowError, match=r"a\.json, element 3, byte 21: not JSON: Unterminated .* cut off\?"
    ):
        JsonLinesSource(path)
    source = JsonLinesSource(path, skip_bad_rows=True)
    assert (len(source), source.skipped, source[1]) == (2, 1, {"a": 2})


def test_bad_elements_are_left_out_and_counted(tmp_path):
    path = write(tmp_path, b'[{"a": 1}, {a: "\xff"}, {"b": 3}]')
    with pytest.raises(RowError, match="element 2, byte 11: not UTF-8"):
        index_lines(path)
    source = JsonLinesSource(path, skip_bad_rows=True)
    assert (source.skipped, source[1], source.columns) == (1, {"b": 3}, ("a", "b"))
    assert source.where(1).endswith("element 3")


@pytest.mark.parametrize(
    ("content", "byte"),
    [
        (b"[1, 2]", 1),
        (b'[{"a": 1}, "b"]', 11),
        (b'[{"a": 1}, [{}]]', 11),
        (b'[{"a": 1}] {"b": 2}', 11),
        (b'[{"a": 1}]\n[{"b": 2}]', 11),
        (b"[null]", 1),
        (b"[}", 1),
    ],
)
def test_other_things_in_an_array_are_refused(tmp_path, content, byte):
    path = write(tmp_path, content)
    with pytest.raises(
        DamagedFileError, match=rf"a\.json, byte {byte}: this is one JSON array, and in it, or be"
    ):
        JsonLinesSource(path, skip_bad_rows=True)


def test_an_empty_array_has_no_rows(tmp_path):
    assert len(JsonLinesSource(write(tmp_path, b"\n [ ]\n"))) == 0
