import gzip
import itertools
import json
import sys
import tracemalloc

import fsspec
import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from coredata.formats import json_lines
from coredata.formats.json_lines import JsonLines, Line, parse_object, parse_quickly
from coredata.formats.rows import DamagedFileError, RowError, texts_of
from coredata.formats.rows_streams import open_stream


def write(path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def line(data: bytes, terminated: bool = True) -> Line:
    return Line(1, 0, data, terminated)


ROWS = [{"text": "one"}, {"text": "zwei ü"}, {"n": [1, None, {"a": "漢"}]}]


def as_lines(rows) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_plain_file(tmp_path):
    assert list(JsonLines(write(tmp_path / "a.jsonl", as_lines(ROWS)))) == ROWS


def test_crlf_bom_blank_lines_and_no_last_newline(tmp_path):
    data = b'\xef\xbb\xbf{"text": "a"}\r\n\r\n \t\n\n{"text": "b"}\r\n{"text": "c"}'
    path = write(tmp_path / "a.jsonl", data)
    assert list(JsonLines(path)) == [{"text": "a"}, {"text": "b"}, {"text": "c"}]
    lines = list(JsonLines(path).lines())
    assert [found.is_blank() for found in lines] == [False, True, True, True, False, False]
    assert [found.number for found in lines] == [1, 2, 3, 4, 5, 6]
    assert [found.offset for found in lines] == [0, 18, 20, 23, 24, 39]
    assert [found.terminated for found in lines] == [True] * 5 + [False]


def test_bom_in_the_middle_of_joined_files(tmp_path):
    path = write(tmp_path / "a.jsonl", b'{"a": 1}\n\xef\xbb\xbf{"a": 2}\n\xef\xbb\xbf\n')
    assert list(JsonLines(path)) == [{"a": 1}, {"a": 2}]


def test_empty_file(tmp_path):
    assert list(JsonLines(write(tmp_path / "a.jsonl", b""))) == []
    assert list(JsonLines(write(tmp_path / "a.jsonl.gz", gzip.compress(b"")))) == []
    nothing = zstandard.ZstdCompressor().compress(b"")
    assert list(JsonLines(write(tmp_path / "a.jsonl.zst", nothing))) == []


@pytest.mark.parametrize(("ending", "name"), [("gz", "gzip"), ("zst", "Zstandard")])
def test_no_bytes_are_no_compressed_file(tmp_path, ending, name):
    path = write(tmp_path / f"a.jsonl.{ending}", b"")
    told = rf"a.jsonl.{ending}: the {name} data ends before it begins: the file has 0 bytes. It wa"
    with pytest.raises(DamagedFileError, match=told) as caught:
        list(JsonLines(path))
    assert "fetch or write it again" in str(caught.value)


def test_separators_that_are_no_line_ends(tmp_path):
    rows = [{"text": "a\u2028b\u0085c\x0bd"}, {"text": "e"}]
    data = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
    data = data.replace(b"\x0b", b"\\u000b")
    assert list(JsonLines(write(tmp_path / "a.jsonl", data))) == rows


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.json.gzip", "a.zstd"])
def test_compressed_files_of_several_members(tmp_path, name):
    def compress(data):
        gz = "gz" in name
        return gzip.compress(data) if gz else zstandard.ZstdCompressor().compress(data)

    data = compress(as_lines(ROWS[:2])) + compress(b"") + compress(as_lines(ROWS[2:]))
    path = write(tmp_path / name, data)
    assert list(JsonLines(path)) == ROWS
    consumed = [done for _, done in JsonLines(path).lines_with_progress()]
    assert consumed[-1] == len(data)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
@pytest.mark.parametrize("cut", [1, 5, 100])
def test_truncated_compressed_file(tmp_path, name, cut):
    rows = [{"text": str(i) * (i % 7)} for i in range(5000)]
    gz = name.endswith("gz")
    compress = gzip.compress if gz else zstandard.ZstdCompressor().compress
    path = write(tmp_path / name, compress(as_lines(rows))[:-cut])
    kind = "gzip" if gz else "Zstandard"
    with pytest.raises(DamagedFileError, match=rf"{name}: the {kind} data ends too early, after"):
        list(JsonLines(path))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_text_named_as_compressed(tmp_path, name):
    path = write(tmp_path / name, as_lines(ROWS))
    with pytest.raises(DamagedFileError, match=r"no intact (gzip|Zstandard) data.*\.jsonl for pl"):
        list(JsonLines(path))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (gzip.compress(b"{}\n"), "gzip data, not JSON lines .*name it .jsonl.gz"),
        (zstandard.ZstdCompressor().compress(b"{}\n"), "Zstandard data.*name it .jsonl.zst"),
        (b"PAR1....", "a parquet file.*name it .parquet"),
        ('{"text": "a"}\n'.encode("utf-16"), "UTF-16 text.*write it again as UTF-8"),
    ],
)
def test_other_formats_named_as_json_lines(tmp_path, data, told):
    with pytest.raises(DamagedFileError, match=told):
        list(JsonLines(write(tmp_path / "a.jsonl", data)))


def test_zstd_is_decompressed_a_little_at_a_time(tmp_path):
    data = zstandard.ZstdCompressor().compress(b'{"text": "' + b"a" * 30_000_000 + b'"}\n' * 2)
    with open_stream(write(tmp_path / "a.jsonl.zst", data)) as stream:
        assert stream.read(1)
        rest = b""
        while part := stream.read(1 << 20):
            rest += part
    assert len(rest) < 30_000_030


def test_without_zstandard(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl.zst", b"")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ModuleNotFoundError, match=r"a.jsonl.zst is .*'coredata\[zstd\]'"):
        list(JsonLines(path))


def test_memory_url():
    with fsspec.open("memory://json-lines/a.jsonl.gz", "wb") as file:
        file.write(gzip.compress(as_lines(ROWS)))
    assert list(JsonLines("memory://json-lines/a.jsonl.gz")) == ROWS


@given(
    pieces=st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r\n", b"\xff"]), max_size=30),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_stretches_give_every_line_once(tmp_path_factory, pieces, cuts):
    data = b"".join(pieces)
    path = write(tmp_path_factory.mktemp("lines") / "a.jsonl", data)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = []
    for start, end in itertools.pairwise(edges):
        stretch = list(JsonLines(path, start, end).lines())
        assert [line.number for line in stretch] == list(range(1, len(stretch) + 1))
        found += [(line.offset, line.data, line.terminated) for line in stretch]
    expected, offset = [], 0
    for part in data.splitlines(keepends=True) if b"\r" not in data else _split(data):
        expected.append((offset, part.removesuffix(b"\n"), part.endswith(b"\n")))
        offset += len(part)
    assert found == expected


def _split(data: bytes) -> list[bytes]:
    parts = [part + b"\n" for part in data.split(b"\n")]
    parts[-1] = parts[-1][:-1]
    return [part for part in parts if part]


def test_a_stretch_of_a_compressed_file(tmp_path):
    with pytest.raises(ValueError, match=r"a.gz is compressed, so it has no stretch from byte 5"):
        JsonLines("a.gz", start=5)


@pytest.mark.slow
def test_50_mb_line_in_bounded_memory(tmp_path):
    big = b'{"text": "' + b"x" * 50_000_000 + b'"}\n'
    path = write(tmp_path / "a.jsonl", b'{"text": "first"}\n' + big + b'{"text": "last"}\n' * 3)
    assert [len(row["text"]) for row in JsonLines(path)] == [5, 50_000_000, 4, 4, 4]
    many = write(tmp_path / "b.jsonl", (b'{"text": "' + b"x" * 1000 + b'"}\n') * 20_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in JsonLines(many).lines()) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_line_longer_than_allowed(tmp_path):
    path = write(tmp_path / "a.jsonl", b'{"a": 1}\n' + b"[" * 3_000_000)
    with pytest.raises(DamagedFileError, match=r"starts at byte 9 is longer than 2000000 bytes"):
        list(JsonLines(path, longest_line=2_000_000))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"a": "\xff"}', r"^not UTF-8: byte 0xff, 7 bytes into the line \(invalid start byte\)$"),
        (b'{"a": "\xed\xa0\x80"}', r"^not UTF-8: byte 0xed, 7 bytes into the line"),
        (b"hello", r"^not JSON: Expecting value at character 1$"),
        (b"{'a': 1}", r"^not JSON: Expecting property name enclosed in double quotes at char"),
        (b'{"a": 1} {"a": 2}', r"^not JSON: Extra data at character 10$"),
        (b'{"a": "tab\there"}', r"^not JSON: Invalid control character at at character 11$"),
        (b"[1]", r"^a list, not an object; a row looks like"),
        (b"null", r"^null, not an object"),
        (b"17", r"^a number, not an object"),
        (b'"text"', r"^a string, not an object"),
        (b"true", r"^true, not an object"),
        (b"[" * 200_000, r"^JSON nested too deep$"),
        (b'{"a": ' + b"9" * 5000 + b"}", r"^not usable JSON: Exceeds the limit"),
        (b"\x00\x00", r"^not JSON"),
    ],
)
def test_bad_lines(data, told):
    with pytest.raises(RowError, match=told):
        parse_object(line(data))


def test_truncated_last_line(tmp_path):
    path = write(tmp_path / "a.jsonl", b'{"text": "a"}\n{"text": "b')
    told = r"a.jsonl, line 2, byte 14: not JSON: .*; the file ends here without a newline: cut off?"
    with pytest.raises(RowError, match=told):
        list(JsonLines(path))


def test_lone_surrogates_stay_for_the_caller():
    assert parse_object(line(rb'{"a": "\ud800"}')) == {"a": "\ud800"}
    assert parse_object(line(rb'{"a": "\ud83d\ude42"}')) == {"a": "🙂"}


def test_texts_of_good_rows():
    assert texts_of({"text": "a"}, "text") == ["a"]
    assert texts_of({"text": ""}, "text") == [""]
    assert texts_of({"text": ["a", "b"]}, "text") == ["a", "b"]
    assert texts_of({"text": []}, "text") == []


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"a": 1, "b": 2}, r'^no key "text"; the row has "a", "b"$'),
        ({}, r'^no key "text"; the row has none$'),
        ({str(i): 0 for i in range(10)}, r'"7" and 2 more$'),
        ({"text": None}, r'^the value under "text" is null, not a string or a list of strings$'),
        ({"text": 17}, r"is a number, not a string"),
        ({"text": False}, r"is false, not a string"),
        ({"text": {}}, r"is an object, not a string"),
        ({"text": b""}, r"is bytes, not a string"),
        ({"text": ["a", 1]}, r'^item 1 of the list under "text" is a number; a list must hold st'),
        ({"text": [["a"]]}, r"item 0 of the list under .* is a list"),
    ],
)
def test_texts_of_bad_rows(row, told):
    with pytest.raises(RowError, match=told):
        texts_of(row, "text")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PLAIN_ROWS = st.builds(
    lambda value, escaped: json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass"),
    st.dictionaries(st.text() | st.just("text"), JSON, max_size=3) | JSON,
    st.booleans(),
)
INSERTED = [b"", b"\\ud800", b"\\u", b"\x00", b"\xff", b'"', b"{", b"\xef\xbb\xbf", b" ", b"1"]
BROKEN_ROWS = st.builds(
    lambda row, at, new: row[: at % (len(row) + 1)] + new + row[at % (len(row) + 1) :],
    PLAIN_ROWS,
    st.integers(0, 60),
    st.sampled_from(INSERTED),
)


def outcome(parse, data):
    """What comes out, or what is said, as text: NaN is not equal to itself."""
    try:
        return repr(parse(line(data)))
    except RowError as error:
        return str(error)


@given(PLAIN_ROWS | BROKEN_ROWS)
def test_parsing_quickly_gives_the_same(data):
    assert outcome(parse_quickly, data) == outcome(parse_object, data)


@pytest.mark.parametrize(
    "data",
    [
        rb'{"text": "\ud800"}',
        rb'{"text": NaN}',
        b'\xef\xbb\xbf{"text": "with a mark"}',
        b'{"text": "twice", "text": "the last counts"}',
        b'{"text": "a\tb"}',
        b'{"text": "\xff"}',
        b"[1]",
        b"",
        b'{"a": ' * 2000 + b"1" + b"}" * 2000,
    ],
)
def test_what_one_package_refuses_is_left_to_the_other(data):
    assert outcome(parse_quickly, data) == outcome(parse_object, data)


def test_without_orjson(monkeypatch):
    monkeypatch.setitem(sys.modules, "orjson", None)
    json_lines._orjson_loads.cache_clear()
    try:
        assert json_lines._orjson_loads() is None
        assert parse_quickly(line(b'{"text": "so"}')) == {"text": "so"}
    finally:
        json_lines._orjson_loads.cache_clear()


def test_with_a_broken_orjson(tmp_path, monkeypatch):
    (tmp_path / "orjson.py").write_text("raise ImportError('orjson.so: wrong ELF class')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "orjson")
    json_lines._orjson_loads.cache_clear()
    try:
        assert json_lines._orjson_loads() is None
        assert parse_quickly(line(b'{"text": "so"}')) == {"text": "so"}
    finally:
        json_lines._orjson_loads.cache_clear()


def test_with_orjson():
    assert json_lines._orjson_loads() is orjson.loads
    assert type(parse_quickly(line(b'{"n": 18446744073709551616}'))["n"]) is float  # by orjson
