import io
import threading
import time

import numpy as np

from coredata.preprocess.board import Board, Totals
from coredata.preprocess.progress import ProgressLine, ProgressPrinter

NOTHING = Totals(0, 0, 0, 0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Counting:
    """More is done at each look."""

    def __init__(self):
        self.looks = 0

    def __call__(self):
        self.looks += 1
        return Totals(10 * self.looks, 5 * self.looks, 100, 7)


def test_a_line():
    done = Totals(1500, 25_000_000, 80_000_000, 9_000_000)
    line = ProgressLine(done, NOTHING, 100_000_000, 10.0)
    assert str(line) == "1,500 documents (25%), 8.0 MB/s, 900,000 tokens/s, 0:00:30 left"


def test_rates_leave_out_what_an_earlier_run_did():
    before = Totals(1000, 50_000_000, 40_000_000, 4_000_000)
    done = Totals(2000, 75_000_000, 77_000_000, 7_700_000)
    line = ProgressLine(done, before, 100_000_000, 3700.0)
    assert str(line) == "2,000 documents (75%), 0.0 MB/s, 1,000 tokens/s, 1:01:40 left"
    line = ProgressLine(done, before, 100_000_000, 10.0)
    assert str(line) == "2,000 documents (75%), 3.7 MB/s, 370,000 tokens/s, 0:00:10 left"


def test_nothing_done_yet():
    line = ProgressLine(NOTHING, NOTHING, 0, 0.0)
    assert str(line) == "0 documents (0%), 0.0 MB/s, 0 tokens/s, time left unknown"


def test_lines_in_a_log_come_every_so_many_documents(monkeypatch):
    monkeypatch.setattr("coredata.preprocess.progress._PERIOD", 0.001)
    stream, look = io.StringIO(), Counting()
    with ProgressPrinter(look, 1000, stream, log_interval=50):
        while look.looks < 24:
            time.sleep(0.001)
    lines = stream.getvalue().splitlines()
    assert [int(line.split()[0]) for line in lines[:4]] == [60, 110, 160, 210]


def test_on_a_terminal_one_line_is_written_over(monkeypatch):
    monkeypatch.setattr("coredata.preprocess.progress._PERIOD", 0.001)
    stream, look = Terminal(), Counting()
    with ProgressPrinter(look, 1000, stream):
        while look.looks < 5:
            time.sleep(0.001)
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().startswith("\r20 documents (1%)")
    assert stream.getvalue().endswith(" \r")


def test_no_thread_where_nothing_is_printed():
    before = set(threading.enumerate())
    with ProgressPrinter(Counting(), 1000, io.StringIO()):
        assert set(threading.enumerate()) <= before


def test_a_run_prints_progress_when_asked(corpus, monkeypatch):
    monkeypatch.setattr("coredata.preprocess.progress._PERIOD", 0.0001)
    stream = io.StringIO()
    rows = [{"text": "x" * 100}] * 2000
    corpus.run(
        corpus.write_rows("in.jsonl", rows), progress=stream, log_interval=1, batch_bytes=5000
    )
    lines = stream.getvalue().splitlines()
    assert lines
    assert all("documents (" in line and "MB/s" in line for line in lines)


def test_board():
    board = Board.create(3)
    try:
        worker = Board.attach(board.path, 3)
        assert worker is not None
        worker.begin(1)
        worker.note(1, Totals(5, 6, 7, 8))
        assert list(board.running()) == [1]
        assert board.totals() == Totals(5, 6, 7, 8)
        worker.begin(2)
        worker.note(2, Totals(1, 1, 1, 1))
        worker.end(1)
        assert list(board.running()) == [2]
        assert board.totals() == Totals(6, 7, 8, 9)
        assert [worker.needed(shard) for shard in range(3)] == [True, True, True]
        board.stop_after(1)
        board.stop_after(2)
        assert [worker.needed(shard) for shard in range(3)] == [True, True, False]
        board.stop_after(-1)
        assert not np.any([worker.needed(shard) for shard in range(3)])
    finally:
        board.remove()
    assert Board.attach(board.path, 3) is None
    board.remove()
