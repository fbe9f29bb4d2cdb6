import io
import json
import time

import pytest

from coredata.tools.output import (
    count_of,
    print_json,
    progress,
    rate_text,
    say,
    size_text,
    time_text,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_numbers():
    assert [size_text(n) for n in (0, 999, 1000, 1_500_000, 2 * 10**12, 10**16)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.5 MB",
        "2.0 TB",
        "10,000.0 TB",
    ]
    assert [time_text(s) for s in (0.04, 9.94, 12.3, 59.4, 61, 3599, 7449)] == [
        "0.0 s",
        "9.9 s",
        "12 s",
        "59 s",
        "1:01 min",
        "59:59 min",
        "2:04:09 h",
    ]


def test_one_thing_and_several():
    nouns = ("file", "prefix", "batch", "bad line", "loss", "epoch")
    assert [count_of(1, noun) for noun in nouns] == [f"1 {noun}" for noun in nouns]
    plurals = ["files", "prefixes", "batches", "bad lines", "losses", "epochs"]
    assert [count_of(0, noun) for noun in nouns] == [f"0 {noun}" for noun in plurals]
    assert [count_of(1200, noun) for noun in nouns] == [f"1,200 {noun}" for noun in plurals]


def test_rates():
    assert rate_text(3_000_000, 2.0) == "1.5 MB/s"
    assert rate_text(500, 0.0) == "500.0 kB/s"


def test_notes_and_json(capsys):
    say("merge", "a note")
    print_json({"a": 1})
    told = capsys.readouterr()
    assert told.err == "coredata merge: a note\n"
    assert json.loads(told.out) == {"a": 1}


def test_a_quick_task_shows_nothing():
    for stream in (io.StringIO(), Terminal()):
        with progress(lambda: "half", stream):
            pass
        assert stream.getvalue() == ""


def test_lines_where_there_is_no_terminal():
    stream = io.StringIO()
    with progress(lambda: "half", stream, delay=0.01, every=0.02):
        time.sleep(0.1)
    lines = stream.getvalue().splitlines()
    assert len(lines) >= 2
    assert set(lines) <= {"half · 0.0 s", "half · 0.1 s"}
    assert "\r" not in stream.getvalue()


def test_one_line_on_a_terminal_gone_at_the_end():
    stream = Terminal()
    with progress(lambda: "half", stream, delay=0.0, redraw=0.01):
        time.sleep(0.1)
    shown = stream.getvalue()
    assert "\n" not in shown
    assert shown.startswith("\rhalf · 0.0 s\r")
    assert shown.endswith("\r            \r")


def test_an_interrupted_task_leaves_a_clean_line():
    stream = Terminal()

    def interrupted():
        with progress(lambda: "half", stream, delay=0.0, redraw=0.01):
            time.sleep(0.1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue().endswith("\r            \r")


def test_long_tasks_wait_before_the_first_line():
    stream = io.StringIO()
    with progress(lambda: "half", stream, delay=0.2, every=0.01):
        time.sleep(0.05)
    assert stream.getvalue() == ""
