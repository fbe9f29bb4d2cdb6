"""Blocks of lines beside the lines themselves."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.formats.json_lines import JsonLines
from coredata.formats.line_blocks import Line, LineBlock, cut_lines

DATA = st.lists(st.binary(max_size=6).map(lambda data: data.replace(b"\n", b"")), max_size=12)


def lines_of(number, offset, data, terminated):
    """The slow twin."""
    found = []
    for index, line in enumerate(data):
        found.append(Line(number + index, offset, line, terminated or index < len(data) - 1))
        offset += len(line) + 1
    return found


@given(DATA, st.integers(1, 9), st.integers(0, 99), st.booleans(), st.integers(1, 20))
def test_pieces_are_the_lines_in_order(data, number, offset, terminated, most):
    block = LineBlock(number, offset, data, terminated)
    expected = lines_of(number, offset, data, terminated)
    assert list(block) == expected
    pieces = list(block.pieces(most))
    assert [line for piece in pieces for line in piece] == expected
    assert sum(piece.size for piece in pieces) == block.size
    if data:
        assert block.size == sum(len(line) + 1 for line in data) - (not terminated)
        assert all(piece.data for piece in pieces)
    assert all(
        len(piece.data) == 1 or piece.size <= most or (len(pieces) == 1 and piece.size < 2 * most)
        for piece in pieces
    )


@given(st.binary(max_size=40), st.sampled_from([0, 1000]))
def test_lines_of_a_chunk(chunk, long):
    with patch("coredata.formats.line_blocks._LONG", long):
        lines, rest = cut_lines(chunk)
    assert [*map(bytes, lines), rest] == chunk.split(b"\n")


def test_only_short_lines_are_copied():
    short, long = b"x" * 99 + b"\n", b"x" * 9999 + b"\n"
    assert {type(line) for line in cut_lines(short * 5)[0]} == {bytes}
    assert {type(line) for line in cut_lines(long * 5)[0]} == {memoryview}


@given(DATA.filter(bool), st.integers(0, 99), st.booleans(), st.integers(0, 200))
def test_parts_of_a_block(data, offset, terminated, end):
    block = LineBlock(0, offset, data, terminated)
    expected = lines_of(0, offset, data, terminated)
    assert list(block.without_first()) == expected[1:]
    assert list(block.starting_before(end)) == [line for line in expected if line.offset < end]


@pytest.mark.parametrize("most", [1, 7, 64, 1 << 20])
def test_a_stretch_reads_little_behind_its_end(tmp_path, most, monkeypatch):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 100_000)
    read = []
    real = JsonLines._blocks

    def counted(self, reads, *rest):
        def reading(length):
            data = reads(length)
            read.append(len(data))
            return data

        return real(self, reading, *rest)

    monkeypatch.setattr(JsonLines, "_blocks", counted)
    end = 9 * 1000 + 4
    blocks = [block for block, _ in JsonLines(str(path), 90, end).blocks_with_progress(most)]
    assert sum(len(block.data) for block in blocks) == 991
    assert sum(read) <= end - 89 + (16 << 10)
