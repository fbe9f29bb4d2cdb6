"""Lines that keep to a width, whatever characters a text has."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.tools.view_cells import cells, escaped, fold, shorten, shorten_left, text_width

texts = st.text(max_size=60) | st.text("a漢\n\t\x1b😀é\u0301\u202e ", max_size=60)


@given(texts, st.integers(12, 40))
def test_folded_lines_hold_the_whole_text_and_fit(text, width):
    lines = list(fold(cells(text, "", ""), width))
    written = "".join(cell.text for line in lines for cell in line)
    assert written == "".join(map(escaped, text))
    assert all(text_width("".join(cell.text for cell in line)) <= width for line in lines)
    for line in lines[:-1]:
        assert line[-1].ends_line or sum(cell.width for cell in line) > width - 10


@given(texts, st.integers(0, 30))
def test_shortened_text_fits(text, width):
    for short in (shorten, shorten_left):
        assert text_width(short(text, width)) <= width
        assert short(text, width).isprintable()


@pytest.mark.parametrize(
    ("character", "written"),
    [
        ("\n", r"\n"),
        ("\x1b", r"\x1b"),
        ("\x07", r"\x07"),
        ("\u202e", r"\u202e"),
        ("\u200b", r"\u200b"),
        ("\ud800", r"\ud800"),
        ("a", "a"),
        ("\\", "\\"),
        ("é", "é"),
        ("漢", "漢"),
    ],
)
def test_escapes(character, written):
    assert escaped(character) == written


def test_widths():
    assert text_width("ab漢") == 4
    assert text_width(unicodedata.normalize("NFD", "é")) == 1
    assert text_width("😀") == 2
    assert shorten("漢字漢字", 5) == "漢字…"
    assert shorten_left("/a/long/path", 6) == "…/path"
