"""A run that stopped goes on from what it has finished, and only then."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import fsspec
import pytest

from coredata.preprocess import PreprocessError, SentenceSplitter, preprocess
from coredata.preprocess.work import WorkDirectory
from coredata.text import ByteTokenizer


class Interrupted(Exception):
    pass


@dataclass(frozen=True)
class Failing(ByteTokenizer):
    """Stops the run at a text while a file exists, and notes every text it has seen."""

    directory: str = ""

    def encode_batch(self, texts):
        with open(Path(self.directory, "seen"), "a") as file:
            file.writelines(f"{text}\n" for text in texts)
        if "row 50" in texts and Path(self.directory, "stop").exists():
            raise Interrupted
        return super().encode_batch(texts)


ROWS = [{"text": f"row {row}"} for row in range(100)]


@pytest.fixture
def stopped(corpus):
    """A corpus of which a run has stopped at row 50 of 100."""
    corpus.path = corpus.write_rows("in.jsonl", ROWS)
    corpus.tokenizer = Failing(directory=str(corpus.directory))
    (corpus.directory / "stop").touch()
    with pytest.raises(Interrupted):
        go_on(corpus)
    (corpus.directory / "stop").unlink()
    (corpus.directory / "seen").unlink()
    return corpus


def go_on(corpus, path=None, tokenizer=None, **options):
    options = {"shard_bytes": 200, **options}
    return preprocess(path or corpus.path, corpus.prefix, tokenizer or corpus.tokenizer, **options)


def undisturbed(corpus) -> dict[str, bytes]:
    corpus.run(corpus.write_rows("in.jsonl", ROWS), append_eod=False)
    return corpus.output_bytes()


def seen(corpus) -> list[str]:
    return (corpus.directory / "seen").read_text().splitlines()


def test_goes_on_from_finished_shards(stopped, new_corpus, capsys):
    report = go_on(stopped, progress=sys.stderr)
    assert "going on from 4 of 10 finished shards\n" in capsys.readouterr().err
    assert report.shards_reused == 4
    assert report.shards == 10
    assert "row 50" in seen(stopped)
    assert "row 20" not in seen(stopped)
    fresh = new_corpus()
    fresh.run(fresh.write_rows("in.jsonl", ROWS))
    assert stopped.output_bytes() == fresh.output_bytes()
    assert stopped.parts() == []


def test_goes_on_with_other_workers_and_batches(stopped):
    assert go_on(stopped, workers=1, batch_bytes=7, max_errors=3).shards_reused == 4
    assert len(stopped.texts()) == 100


def test_without_shard_size_the_plan_of_the_stopped_run_holds(corpus):
    corpus.path = corpus.write_rows("in.jsonl", [*ROWS, {"text": "x" * 3_000_000}])
    corpus.tokenizer = Failing(directory=str(corpus.directory))
    (corpus.directory / "stop").touch()
    with pytest.raises(Interrupted):
        go_on(corpus, shard_bytes=None, workers=1)
    (corpus.directory / "stop").unlink()
    with open(f"{corpus.prefix}.parts/plan.json") as file:
        planned = json.load(file)["shards"]
    assert len(planned) == 3
    report = go_on(corpus, shard_bytes=None, batch_bytes=99)
    assert report.shards == 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"append_eod": True}, "end_token"),
        ({"drop_empty": True}, "drop_empty"),
        ({"shard_bytes": 300}, "shard_bytes"),
        ({"splitter": SentenceSplitter()}, "splitter"),
    ],
)
def test_other_settings_begin_anew(stopped, capsys, change, told):
    report = go_on(stopped, progress=sys.stderr, **change)
    assert report.shards_reused == 0
    assert len(seen(stopped)) == 100
    told = f"beginning anew: not as in the stopped run before: {told}\n"
    assert told in capsys.readouterr().err


def test_another_tokenizer_begins_anew(stopped):
    other = Failing(directory=str(stopped.directory), pad=None)
    assert go_on(stopped, tokenizer=other).shards_reused == 0


def test_changed_input_begins_anew(stopped):
    rows = [{"text": f"ROW {row}"} for row in range(100)]
    stopped.write_rows("in.jsonl", rows)
    os.utime(stopped.path, (1, 1))
    assert go_on(stopped).shards_reused == 0
    assert stopped.texts()[0] == ["ROW 0"]


def test_another_file_beside_it_begins_anew(stopped):
    other = stopped.write_rows("other.jsonl", [{"text": "z"}])
    assert go_on(stopped, path=[other, stopped.path]).shards_reused == 0
    assert stopped.texts()[0] == ["z"]


def test_a_run_that_stopped_at_the_very_end(stopped, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("coredata.preprocess.growing_output.publish_partial", full)
        with pytest.raises(PreprocessError, match=r"No space left on device.*shards are kept"):
            go_on(stopped)
    assert stopped.output_bytes() == {}
    assert go_on(stopped).shards_reused == 10
    assert len(stopped.texts()) == 100


def test_a_stopped_run_behind_a_url(corpus):
    (corpus.directory / "stop").touch()
    path = corpus.write_rows("in.jsonl", ROWS)
    tokenizer = Failing(directory=str(corpus.directory))
    prefix = "memory://resume/out"
    with pytest.raises(Interrupted):
        preprocess(path, prefix, tokenizer, shard_bytes=200, json_keys=["text"])
    (corpus.directory / "stop").unlink()
    memory = fsspec.filesystem("memory")
    assert len(memory.find("/resume")) == 1 + 4 * 3
    report = preprocess(path, prefix, tokenizer, shard_bytes=200, append_eod=True)
    assert report.shards_reused == 0
    assert len(memory.find("/resume")) == 2


@pytest.mark.parametrize("lost", ["000002_0.bin", "000002_0.idx", "000002.json"])
def test_a_shard_whose_files_are_lost_is_done_again(stopped, lost):
    os.unlink(Path(f"{stopped.prefix}.parts", lost))
    assert go_on(stopped).shards_reused == 3
    assert len(stopped.texts()) == 100


def test_a_part_file_of_another_size_is_done_again(stopped):
    path = Path(f"{stopped.prefix}.parts", "000001_0.bin")
    path.write_bytes(path.read_bytes()[:-1])
    assert go_on(stopped).shards_reused == 3


@pytest.mark.parametrize("name", ["000001_0.bin", "000001_0.idx"])
def test_a_part_file_that_a_crash_of_the_machine_spoilt_is_done_again(stopped, new_corpus, name):
    directory = Path(f"{stopped.prefix}.parts")
    (directory / "joined.json").unlink()
    (directory / name).write_bytes(bytes((directory / name).stat().st_size))
    assert go_on(stopped).shards_reused == 3
    assert stopped.output_bytes() == undisturbed(new_corpus())


def test_tokens_that_are_joined_are_not_read_again(stopped, new_corpus, monkeypatch):
    directory = Path(f"{stopped.prefix}.parts")
    noted = json.loads((directory / "joined.json").read_text())
    assert noted["shards"] >= 1
    read = []
    real = WorkDirectory._size_and_checksum
    monkeypatch.setattr(
        WorkDirectory,
        "_size_and_checksum",
        lambda self, path: read.append(Path(path).name) or real(self, path),
    )
    first = directory / "000000_0.bin"
    first.write_bytes(bytes(first.stat().st_size))
    assert go_on(stopped).shards_reused == 4
    assert "000000_0.bin" not in read
    assert "000000_0.idx" in read
    assert stopped.output_bytes() == undisturbed(new_corpus())


def test_tokens_are_read_where_what_was_joined_is_lost(stopped, new_corpus):
    directory = Path(f"{stopped.prefix}.parts")
    first = directory / "000000_0.bin"
    first.write_bytes(bytes(first.stat().st_size))
    (directory / "joined_0.bin").unlink()
    assert go_on(stopped).shards_reused == 3
    assert stopped.output_bytes() == undisturbed(new_corpus())


def test_the_output_may_be_a_file_url(stopped, new_corpus):
    stopped.prefix = f"file://{stopped.prefix}"
    assert go_on(stopped).shards_reused == 4
    stopped.prefix = stopped.prefix.removeprefix("file://")
    assert stopped.output_bytes() == undisturbed(new_corpus())


@pytest.mark.parametrize("left", [b"", b"\0\0\0", b'{"rows"'])
def test_a_mark_that_a_crash_of_the_machine_spoilt_is_none(stopped, left):
    Path(f"{stopped.prefix}.parts", "000001.json").write_bytes(left)
    assert go_on(stopped).shards_reused == 3
    assert len(stopped.texts()) == 100


def test_bad_lines_of_finished_shards_are_remembered(corpus):
    lines = [json.dumps(row).encode() + b"\n" for row in ROWS]
    lines[10] = b"bad\n"
    corpus.path = corpus.write("in.jsonl", b"".join(lines))
    corpus.tokenizer = Failing(directory=str(corpus.directory))
    (corpus.directory / "stop").touch()
    with pytest.raises(Interrupted):
        go_on(corpus, max_errors=1)
    (corpus.directory / "stop").unlink()
    with pytest.raises(PreprocessError, match=r"in.jsonl, line 11, byte"):
        go_on(corpus)
    report = go_on(corpus, max_errors=1)
    assert report.shards_reused > 3
    assert report.rows.bad_lines == 1
    with open(report.error_report) as file:
        assert [json.loads(line)["line"] for line in file] == [11]


def test_a_bad_line_can_be_allowed_afterwards(corpus):
    path = corpus.write_rows("in.jsonl", [{"text": "a"}] * 50 + [{}] + [{"text": "b"}] * 50)
    with pytest.raises(PreprocessError, match=r"line 51, .*no key"):
        corpus.run(path, shard_bytes=100)
    report = corpus.run(path, shard_bytes=100, max_errors=1)
    assert report.shards_reused > 5
    assert corpus.texts() == [["a"]] * 50 + [["b"]] * 50


def test_a_run_after_a_finished_one_does_everything_again(corpus):
    path = corpus.write_rows("in.jsonl", ROWS)
    corpus.run(path)
    first = corpus.output_bytes()
    assert corpus.run(path).shards_reused == 0
    assert corpus.output_bytes() == first


CHILD = """
import sys
from coredata.preprocess import preprocess
from coredata.text import ByteTokenizer

class Slow(ByteTokenizer):
    def encode_batch(self, texts):
        if "row 50" in texts:
            print("at row 50", flush=True)
            sys.stdin.read()
        return super().encode_batch(texts)

preprocess(sys.argv[1], sys.argv[2], Slow(), shard_bytes=200)
"""


@pytest.mark.parametrize("append_eod", [False, True], ids=["same", "other"])
def test_two_runs_at_once_do_not_meet(corpus, new_corpus, append_eod):
    path = corpus.write_rows("in.jsonl", ROWS)
    command = [sys.executable, "-c", CHILD, path, corpus.prefix]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"at row 50\n"
        told = rf"another process is preprocessing into {corpus.prefix}; wait for it, or give"
        with pytest.raises(PreprocessError, match=told):
            corpus.run(path, shard_bytes=200, append_eod=append_eod)
        first.communicate()
    assert first.returncode == 0
    assert corpus.output_bytes() == undisturbed(new_corpus())
    assert not os.path.exists(f"{corpus.prefix}.parts")


def test_a_run_that_ends_while_another_begins(corpus, new_corpus, monkeypatch):
    """Its directory goes between the making of the directory and the lock in it."""
    path = corpus.write_rows("in.jsonl", ROWS)
    real, gone = os.makedirs, []

    def makedirs(name, **options):
        real(name, **options)
        if not gone and name.endswith(".parts"):
            gone.append(os.rmdir(name))

    monkeypatch.setattr("coredata.preprocess.work_lock.os.makedirs", makedirs)
    corpus.run(path)
    assert gone
    assert corpus.output_bytes() == undisturbed(new_corpus())


def test_a_directory_that_another_run_has_begun_stays(corpus, monkeypatch):
    path = corpus.write_rows("in.jsonl", ROWS)
    real = os.rmdir

    def rmdir(name):
        Path(name, "lock").touch()
        real(name)

    monkeypatch.setattr("coredata.preprocess.work.os.rmdir", rmdir)
    corpus.run(path)
    assert corpus.parts() == ["lock"]
    assert len(corpus.texts()) == 100


def test_what_lies_there_without_a_plan_is_not_taken(stopped, new_corpus):
    Path(f"{stopped.prefix}.parts", "plan.json").write_bytes(b"")
    Path(f"{stopped.prefix}.parts", "joined_0.bin").write_bytes(b"x" * 5000)
    Path(f"{stopped.prefix}.parts", "joined.json").write_text('{"shards": 2, "sizes": [90]}')
    assert go_on(stopped).shards_reused == 0
    assert stopped.output_bytes() == undisturbed(new_corpus())
