"""What the training scripts say in one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coredata.tools.main import main

ROOT = Path(__file__).parents[2]


def run(script, *flags, without=()):
    hide = "".join(f"sys.modules[{name!r}] = None; " for name in without)
    path = str(ROOT / "scripts" / script)
    code = f"import runpy, sys; {hide}runpy.run_path({path!r}, run_name='__main__')"
    adapters = [str(ROOT / "adapters" / kind) for kind in ("torch", "jax")]
    return subprocess.run(
        [sys.executable, "-c", code, *flags],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *adapters])},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "package", "extra"),
    [
        ("train_torch.py", "torch", "pip install 'coredata[torch]'"),
        ("train_jax.py", "jax", "pip install 'coredata[jax]' orbax-checkpoint"),
    ],
)
def test_without_the_package(script, package, extra):
    done = run(script, "--help", without=[package])
    assert done.returncode == 1
    assert done.stderr.startswith(f"{script}: ")
    assert done.stderr.count("\n") == 1
    assert extra in done.stderr


@pytest.mark.slow
def test_a_mesh_that_is_none(tmp_path):
    done = run("train_jax.py", "--directory", str(tmp_path), "--mesh", "1x1")
    assert done.returncode == 2
    assert "such as 1,1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "more"), [("train_torch.py", ()), ("train_jax.py", ("--mesh", "1,1"))]
)
def test_an_error_is_one_line(script, more, tmp_path, monkeypatch):
    flags = ("--directory", str(tmp_path), *more, "--data-path", "nowhere")
    flags += ("--tokenizer-type", "ByteTokenizer")
    done = run(script, *flags)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith(f"{script}: ")]
    assert "nowhere" in line
    assert done.stderr.endswith(f"{line}\n")
    monkeypatch.setenv("COREDATA_TRACEBACK", "1")
    done = run(script, *flags)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "flags", "message"),
    [
        ("train_torch.py", ("--sft",), "--sft: this trainer is for gpt; train_jax.py packs"),
        ("train_jax.py", ("--dataset", "t5"), "--dataset t5: this trainer is for gpt"),
        (
            "train_jax.py",
            ("--use-varlen-dataset",),
            "one length here; give --sequence-packing-scheduler best_fit_decreasing",
        ),
    ],
)
def test_samples_that_a_trainer_does_not_take(script, flags, message, tmp_path):
    mesh = ("--mesh", "1,1") if script == "train_jax.py" else ()
    done = run(script, "--directory", str(tmp_path), *mesh, *flags)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "more"), [("train_torch.py", ()), ("train_jax.py", ("--mesh", "1,1"))]
)
def test_samples_are_skipped(script, more, tmp_path):
    sizes = ("--steps", "2", "--global-batch-size", "2", "--seq-length", "16")
    plain = run(script, "--directory", str(tmp_path), *more, *sizes)
    skipping = run(script, "--directory", str(tmp_path), *more, *sizes, "--skip-samples", "0-1")
    assert plain.returncode == skipping.returncode == 0, skipping.stderr
    digests = [
        [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("step")]
        for done in (plain, skipping)
    ]
    assert digests[1] == digests[0][1:]
    assert "no more samples after step 1\n" in skipping.stdout
    assert "no more samples" not in plain.stdout


@pytest.mark.slow
def test_conversations_are_packed_by_a_prepared_plan(tmp_path):
    chats = tmp_path / "chats.jsonl"
    turns = [
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a" * (i % 11 + 1)}]
        for i in range(20)
    ]
    chats.write_text("".join(json.dumps({"messages": one}) + "\n" for one in turns))
    data = ("--data-path", str(chats), "--tokenizer-type", "ByteTokenizer", "--seq-length", "32")
    data += ("--use-varlen-dataset", "--sequence-packing-scheduler", "best_fit_decreasing")
    data += ("--packing-window", "16", "--split", "1", "--data-cache-path", str(tmp_path / "cache"))
    steps = ("--train-iters", "30", "--global-batch-size", "2")
    assert main(["prepare-cache", *data, *steps, "--eval-iters", "0", "--packing-plan"]) == 0
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()}
    assert any("PackPlans-train-description" in path.name for path in kept)
    flags = ("--directory", str(tmp_path / "run"), "--mesh", "1,1")
    done = run("train_jax.py", *flags, *data, *steps)
    assert done.returncode == 0, done.stderr
    found = [line for line in done.stdout.splitlines() if line.startswith("step")]
    assert 2 < len(found) < 30, "several samples share a row"
    assert f"no more samples after step {len(found)}\n" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()} == kept
