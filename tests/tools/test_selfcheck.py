import argparse
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from coredata.testing import (
    checks_golden,
    checks_invariants,
    checks_masked,
    golden_directory,
    golden_vectors,
    random_corpus,
    write_corpus,
)
from coredata.tools import selfcheck
from coredata.tools.selfcheck_page import SelfcheckPage


def run(*flags):
    parser = argparse.ArgumentParser()
    selfcheck.add_arguments(parser)
    return selfcheck.run(parser.parse_args([str(flag) for flag in flags]))


@pytest.fixture
def prefix(tmp_path):
    return write_corpus(tmp_path / "mine", random_corpus(1, documents=50, longest=90))


@pytest.mark.slow
def test_the_installation(capsys):
    assert run() == 0
    out = capsys.readouterr().out
    for heading in ("Reference vectors", "Invariants", "Throughput"):
        assert f"\n{heading}\n" in out
    assert "million tokens/s" in out
    assert "All 18 checks passed" in out
    assert max(map(len, out.splitlines())) <= 120


def test_a_file_of_ones_own(prefix, capsys):
    assert run("--only-data", "--data-path", prefix, "--seq-length", 32, "--vocab-size", 257) == 0
    out = capsys.readouterr().out
    assert f"\n{prefix}\n" in out
    tokens = sum(map(len, random_corpus(1, documents=50, longest=90)))
    assert f"50 documents, {tokens:,} tokens, uint16" in out
    assert "samples of 32, also read" in out
    assert "Reference vectors" not in out
    assert "All 7 checks passed" in out


@pytest.mark.slow
def test_a_blend_of_ones_own(prefix, tmp_path, capsys):
    other = write_corpus(tmp_path / "other", random_corpus(2, documents=20, longest=50))
    flags = ("--only-data", "--json", "--data-path", "0.7", prefix, "0.3", other)
    status = run(*flags)
    data = json.loads(capsys.readouterr().out)
    failures = {f"{c['group']}: {c['name']}": c["failure"] for c in data["checks"]}
    assert [name for name, failure in failures.items() if failure] == []
    assert status == 0
    assert [c["name"] for c in data["checks"] if c["group"] == "Blend"] == [
        "shares at every point",
        "dataset contract",
        "resume at every step",
        "same batches on any ranks",
    ]


def test_as_json(prefix, capsys):
    assert run("--only-data", "--json", "--data-path", prefix) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["passed"] is True
    assert data["checks"][0]["name"] == "token file"
    assert data["checks"][0]["group"] == prefix
    assert {"group", "name", "passed", "covered", "failure", "seconds"} == set(data["checks"][0])
    assert [rate["name"] for rate in data["throughput"]] == ["get_batch", "BatchLoader, prefetch 2"]
    assert all(rate["tokens_per_second"] > 0 for rate in data["throughput"])
    assert captured.err == ""


def truncate(prefix):
    path = f"{prefix}.bin"
    os.truncate(path, os.path.getsize(path) - 6)
    return "SequencePointerError: .*mine.bin"


def change_pointer(prefix):
    with open(f"{prefix}.idx", "r+b") as file:
        file.seek(34 + 4 * 50 + 8 * 3)
        file.write((2).to_bytes(8, "little"))
    return "SequencePointerError: .*mine.idx"


def change_magic(prefix):
    with open(f"{prefix}.idx", "r+b") as file:
        file.write(b"x")
    return "MagicError"


def remove_index(prefix):
    os.remove(f"{prefix}.idx")
    return "MissingFileError: .*mine.idx"


@pytest.mark.parametrize("damage", [truncate, change_pointer, change_magic, remove_index])
def test_a_damaged_file_is_named_and_the_others_are_still_checked(prefix, tmp_path, capsys, damage):
    other = write_corpus(tmp_path / "other", random_corpus(2))
    match = damage(prefix)
    assert run("--only-data", "--json", "--data-path", prefix, other) == 1
    data = json.loads(capsys.readouterr().out)
    failed = [check for check in data["checks"] if not check["passed"]]
    assert [(check["group"], check["name"]) for check in failed] == [(prefix, "token file")]
    with pytest.raises(AssertionError, match=match):
        raise AssertionError(failed[0]["failure"])
    assert sum(check["group"] == other for check in data["checks"]) == 7
    assert not any(check["group"] == "Blend" for check in data["checks"])
    assert data["throughput"] == []


@pytest.mark.parametrize(
    ("documents", "flags", "match"),
    [
        ([[1, 2, 300]], ["--vocab-size", 257], "300"),
        ([[], []], [], r"it has no tokens \(2 documents\)"),
    ],
)
def test_files_that_are_no_use(tmp_path, capsys, documents, flags, match):
    prefix = write_corpus(tmp_path / "mine", documents)
    assert run("--only-data", "--data-path", prefix, *flags) == 1
    out = capsys.readouterr().out
    with pytest.raises(AssertionError, match=match):
        raise AssertionError(" ".join(out.split()))
    assert f"1 of 1 checks FAILED: {prefix}: token file" in out


def in_a_process(*flags, code="from coredata.tools.main import main; sys.exit(main(sys.argv[1:]))"):
    """Run without the shape checks of the tests, which make it slow."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import sys\n{code}", *map(str, flags)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--seq-length", 64]])
def test_odd_files_pass(tmp_path, flags):
    odd = {
        "two": [[1, 2]],
        "single": [[5]] * 30,
        "empty": [[]] * 20 + [[1, 2, 3]] + [[]] * 3,
        "long": [np.arange(30000) % 7],
    }
    prefixes = [write_corpus(tmp_path / name, documents) for name, documents in odd.items()]
    done = in_a_process("selfcheck", "--only-data", *flags, "--data-path", *prefixes)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All 32 checks passed" in done.stdout
    assert done.stderr == ""


def test_a_wrong_result_fails_and_says_which(monkeypatch, capsys):
    true_randperm = checks_invariants.torch_randperm

    def wrong_randperm(n, seed):
        permutation = true_randperm(n, seed)
        permutation[: n // 2] = permutation[: n // 2][::-1]
        return permutation

    monkeypatch.setattr(checks_invariants, "torch_randperm", wrong_randperm)
    monkeypatch.setattr(checks_golden, "golden_checks", list)
    assert run() == 1
    out = capsys.readouterr().out
    assert "1 of 9 checks FAILED: Invariants: orders equal plain loops" in out
    assert "randperm[0]: is" in out


def test_a_wrong_vector_fails_and_is_named(tmp_path, monkeypatch, capsys):
    shutil.copytree(golden_directory("blend"), tmp_path / "golden" / "blend")
    path = tmp_path / "golden" / "blend" / "two.npz"
    with np.load(path) as loaded:
        arrays = dict(loaded)
    arrays["dataset_index"][7] ^= 1
    np.savez(path, **arrays)
    monkeypatch.setattr(golden_vectors, "files", lambda package: tmp_path)
    blends = [check for check in checks_golden.golden_checks() if check.name == "blends"]
    monkeypatch.setattr(checks_golden, "golden_checks", lambda: blends)
    monkeypatch.setattr(checks_invariants, "invariant_checks", lambda seed: [])
    monkeypatch.setattr(checks_masked, "masked_golden_checks", list)
    monkeypatch.setattr(checks_masked, "masked_invariant_checks", lambda seed: [])
    assert run() == 1
    out = capsys.readouterr().out
    assert "blend/two, dataset_index[7]: is" in out
    assert "1 of 1 checks FAILED: Reference vectors: blends" in out


@pytest.mark.parametrize(
    ("flags", "match"),
    [
        (["--only-data"], "--only-data: there is no --data-path"),
        (["--seq-length", 0], "--seq-length 0: need at least 1, such as 1024"),
        (["--vocab-size", 0], "--vocab-size 0: need at least 1"),
        (["--seed", -1], "--seed -1: need 0 to 4294967295"),
    ],
)
def test_flags_that_make_no_sense(flags, match):
    with pytest.raises(ValueError, match=match):
        run(*flags)


class Terminal:
    """A stream that is a terminal of few characters."""

    encoding = "ascii"

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return True


def test_the_page_on_a_plain_terminal(monkeypatch):
    from coredata.testing.checks import CheckResult

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "72")
    terminal = Terminal()
    page = SelfcheckPage(terminal)
    results = [
        CheckResult("g", "a" * 50, True, "b" * 100, "", 0.5),
        CheckResult("g", "broken", False, "", "wrong " * 30, 123.25),
    ]
    page.begin()
    for result in results:
        page.result(result)
    page.end(results, [])
    plain = terminal.text.replace("\x1b[31m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")
    lines = plain.splitlines()
    assert max(map(len, lines)) <= 72
    assert any(line.endswith("?    ok    0.50 s") for line in lines)  # … in ASCII
    assert "\x1b[31m  broken" in terminal.text
    assert "FAILED  123.25 s" in plain
    assert "1 of 2 checks FAILED: g: broken" in plain


BLOCKED = """
import importlib.abc, importlib.metadata, sys
ALLOWED = {"numpy", "numba", "llvmlite", "coredata"}
asked = set()

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ALLOWED or top in sys.stdlib_module_names:
            return None
        asked.add(top)
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Block())
# Numba would load what installed packages add to it.
importlib.metadata.entry_points = lambda **_: importlib.metadata.EntryPoints()
for name in ("fsspec", "tokenizers", "pytest", "hypothesis", "torch"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{name} is not blocked")
asked.clear()
from coredata.tools.main import main
status = main(["selfcheck", "--data-path", *sys.argv[1:]])
others = {name for name in sys.modules if name.partition(".")[0] in asked}
print("imported:", sorted(others))
sys.exit(status)
"""


@pytest.mark.slow
def test_numpy_and_numba_are_enough(prefix):
    done = in_a_process(prefix, code=BLOCKED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All 25 checks passed" in done.stdout
    assert "imported: []" in done.stdout
    assert done.stderr == ""
