"""Several worker processes: the same bytes, and what happens when one dies."""

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from coredata.preprocess import PreprocessError, WorkerDied, preprocess
from coredata.text import ByteTokenizer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Waiting(ByteTokenizer):
    """Meeting "wait" or "stay", it notes its process in a file, and waits for another to go."""

    directory: str = ""

    def encode_batch(self, texts):
        for word in {"wait", "stay"}.intersection(texts):
            Path(self.directory, word).write_text(str(os.getpid()))
            while Path(self.directory, "hold").exists():
                time.sleep(0.02)
        return super().encode_batch(texts)


@dataclass(frozen=True)
class Leaving(ByteTokenizer):
    """Ends its process when it meets "leave"."""

    def encode_batch(self, texts):
        if "leave" in texts:
            os._exit(7)
        return super().encode_batch(texts)


def read_when_there(path: Path) -> str:
    for _ in range(1500):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} did not appear")


def test_seven_compressed_files_and_three_workers(new_corpus):
    outputs = []
    for workers in (1, 3):
        corpus = new_corpus()
        paths = []
        for number in range(7):
            rows = [{"text": f"file {number} row {row}" * (row % 3)} for row in range(40 * number)]
            data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
            paths.append(corpus.write(f"{6 - number}.jsonl.gz", gzip.compress(data)))
        report = corpus.run(paths, workers=workers, append_eod=True)
        assert report.shards == 7
        assert report.keys["text"].documents == 40 * 21
        outputs.append(corpus.output_bytes())
    assert outputs[0] == outputs[1]


def test_bytes_do_not_depend_on_workers_shards_batches_or_executor(new_corpus):
    rows = [{"text": [f"row {row}", "x" * (row % 9)], "note": str(row)} for row in range(300)]
    ways = [
        {},
        {"workers": 2, "shard_bytes": 1500},
        {"workers": 3, "shard_bytes": 4000, "batch_bytes": 100},
        {"workers": 2, "executor": ThreadPoolExecutor(2), "shard_bytes": 3000},
        {"workers": 2, "shard_bytes": 1500},
    ]
    outputs = []
    for way in ways:
        corpus = new_corpus()
        path = corpus.write_rows("in.jsonl", rows)
        report = corpus.run(path, json_keys=["note", "text"], append_eod=True, **way)
        assert report.documents == 300
        outputs.append(corpus.output_bytes())
        assert set(outputs[-1]) == {
            f"_{key}_document.{half}" for key in ("note", "text") for half in ("bin", "idx")
        }
    assert all(output == outputs[0] for output in outputs)


def test_first_bad_line_in_input_order_is_the_one_reported(corpus):
    lines = [b'{"text": "%d"}\n' % number for number in range(2000)]
    lines[900] = b"bad\n"
    lines[1990] = b"also bad\n"
    path = corpus.write("in.jsonl", b"".join(lines))
    with pytest.raises(PreprocessError, match=r"in.jsonl, line 901, byte 14290: not JSON"):
        corpus.run(path, workers=2, shard_bytes=14000)
    with pytest.raises(PreprocessError, match=r"line 1991, .* bad line 2, and max_errors .* is 1"):
        corpus.run(path, workers=2, shard_bytes=3000, max_errors=1)


def test_a_killed_worker_ends_the_run_and_the_next_run_goes_on(new_corpus):
    rows = [{"text": f"row {row}"} for row in range(1000)]
    rows[700] = {"text": "wait"}
    rows[900] = {"text": "stay"}
    corpus, undisturbed = new_corpus(), new_corpus()
    path = corpus.write_rows("in.jsonl", rows)
    hold = corpus.directory / "hold"
    hold.touch()
    tokenizer = Waiting(directory=str(corpus.directory))
    options = {"workers": 2, "shard_bytes": 4000, "append_eod": True}
    killed = []

    def kill():
        pid = int(read_when_there(corpus.directory / "wait"))
        read_when_there(corpus.directory / "stay")
        os.kill(pid, signal.SIGKILL)
        killed.append((pid, time.monotonic()))

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(WorkerDied) as caught:
        preprocess(path, corpus.prefix, tokenizer, **options)
    ended = time.monotonic()
    killer.join()
    assert ended - killed[0][1] < 5
    assert str(caught.value) == (
        f"worker process {killed[0][0]} was killed by signal 9 (SIGKILL, as the system does when "
        f"memory runs out) while it worked on shard 3 ({path}, bytes 12000 to 16000). Finished "
        "shards are kept: run the same again to go on from them, with fewer workers if memory "
        "ran out."
    )
    assert corpus.output_bytes() == {}
    finished = [name for name in corpus.parts() if name[0] == "0" and name.endswith(".json")]
    assert finished == ["000000.json", "000001.json", "000002.json"]

    hold.unlink()
    report = preprocess(path, corpus.prefix, tokenizer, **options)
    assert report.shards_reused == 3
    assert "from an earlier run" in report.summary()
    assert corpus.parts() == []
    undisturbed.run(undisturbed.write_rows("in.jsonl", rows), append_eod=True)
    assert corpus.output_bytes() == undisturbed.output_bytes()


def test_a_worker_that_ends_by_itself(corpus):
    path = corpus.write_rows("in.jsonl", [{"text": "a"}] * 100 + [{"text": "leave"}])
    told = r"worker process \d+ ended with exit code 7 while it worked on shard \d+ \(.*in.jsonl, b"
    with pytest.raises(WorkerDied, match=told):
        preprocess(path, corpus.prefix, Leaving(), workers=2, shard_bytes=400)


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.preprocess.test_processes import Waiting
from coredata.preprocess import preprocess
{guard}
    preprocess({path!r}, {prefix!r}, Waiting(directory={directory!r}), workers=2, shard_bytes=300)
"""


def start_script(corpus, guard='if __name__ == "__main__":'):
    rows = [{"text": f"row {row}"} for row in range(100)] + [{"text": "wait"}]
    names = {
        "root": str(ROOT),
        "path": corpus.write_rows("in.jsonl", rows),
        "prefix": corpus.prefix,
        "directory": str(corpus.directory),
        "guard": guard,
    }
    script = corpus.write("script.py", SCRIPT.format(**names).encode())
    return subprocess.Popen(
        [sys.executable, script],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(corpus.directory)},
    )


def test_workers_end_when_their_parent_is_killed(corpus):
    (corpus.directory / "hold").touch()
    with start_script(corpus) as parent:
        pid = int(read_when_there(corpus.directory / "wait"))
        parent.kill()
        parent.wait()
        for _ in range(500):
            if not Path(f"/proc/{pid}").exists():
                return
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)
        raise AssertionError("the worker went on without its parent")


def test_ctrl_c_ends_the_run_and_the_next_run_goes_on(corpus):
    (corpus.directory / "hold").touch()
    with start_script(corpus) as parent:
        read_when_there(corpus.directory / "wait")
        os.killpg(parent.pid, signal.SIGINT)
        time.sleep(0.5)
        (corpus.directory / "hold").unlink()
        _, errors = parent.communicate(timeout=30)
    assert parent.returncode != 0
    assert errors.count("KeyboardInterrupt") == 1
    assert "000006.json" not in corpus.parts()
    report = preprocess(
        str(corpus.directory / "in.jsonl"),
        corpus.prefix,
        Waiting(directory=str(corpus.directory)),
        shard_bytes=300,
    )
    assert report.shards == 7
    assert 0 < report.shards_reused < 7
    assert report.documents == 101


def test_a_script_without_a_main_guard_is_told_so(corpus):
    with start_script(corpus, guard="if True:") as parent:
        _, errors = parent.communicate(timeout=60)
    assert parent.returncode == 1
    assert "under `if __name__ == '__main__':`; or use workers=1" in errors
