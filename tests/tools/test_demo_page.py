import io

import numpy as np

from coredata.text import ByteTokenizer
from coredata.tools.demo_page import Page, excerpt, shorten
from coredata.tools.demo_run import digest
from coredata.tools.demo_sample import boundaries, pieces


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_tables_are_aligned():
    stream = io.StringIO()
    Page(stream).table(("", "n"), [("long name", "1"), ("x", "1,000")])
    assert stream.getvalue().splitlines() == [
        "                   n",
        "   long name       1",
        "   x           1,000",
    ]


def test_boxes_have_an_end():
    stream = io.StringIO()
    page = Page(stream)
    page.box("one", ["a" * 100, "b\tc\x1b[31m"], last=False)
    page.box("two", [], last=True)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "   ├─ one"
    assert lines[1].endswith("…")
    assert len(lines[1]) <= 88
    assert lines[2] == "   │  b   c [31m"
    assert lines[3:] == ["   ├─ two", "   ╰─"]


def test_colours_only_on_a_terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream, coloured in ((Terminal(), True), (io.StringIO(), False)):
        page = Page(stream)
        page.title("title")
        page.heading(1, "part")
        page.note("note")
        page.good("good")
        page.fail("bad")
        assert ("\x1b[" in stream.getvalue()) is coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Page(Terminal()).colours


def test_a_stream_that_cannot_write_everything():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Page(stream).line("├─ naïve")
    assert raw.getvalue() == b"?? na?ve\n"


def test_excerpts_and_shortening():
    assert excerpt("a\n\nb\nc\n", 2, 1) == ["a", "b", "c"]
    assert excerpt("a\nb\nc\nd", 2, 1) == ["a", "b", "c", "d"]
    assert excerpt("a\nb\nc\nd\ne", 2, 1) == ["a", "b", "  … 2 lines …", "e"]
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"


def test_pieces_of_a_sample():
    tokens = np.array([104, 105, 256, 97, 256, 98], dtype=np.int64)
    cu_seqlens = np.array([0, 3, 5, 6, 6, 6, 6], dtype=np.int32)
    bounds = boundaries(cu_seqlens)
    assert bounds.tolist() == [0, 3, 5, 6]
    found = pieces(tokens, bounds.tolist(), ByteTokenizer())
    assert [(part.tokens, part.text, part.ends) for part in found] == [
        (3, "hi", True),
        (2, "a", True),
        (1, "b", False),
    ]


def test_a_digest_sees_every_field_shape_and_dtype():
    batch = {"a": np.arange(4), "b": np.zeros(2, np.float32)}
    same = {"b": np.zeros(2, np.float32), "a": np.arange(8)[::2] // 2}
    assert digest(batch) == digest(same)
    others = [
        {**batch, "a": np.arange(4).reshape(2, 2)},
        {**batch, "a": np.arange(4, dtype=np.int32)},
        {**batch, "b": np.ones(2, np.float32)},
        {**batch, "b": np.zeros(2, np.int32)},
        {"a": batch["a"], "c": batch["b"]},
    ]
    assert len({digest(batch), *map(digest, others)}) == 6
