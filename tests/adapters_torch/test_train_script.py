"""The training script, run as its reader would: alone, under torchrun, killed and continued."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOKENIZER = ROOT / "coredata" / "text" / "assets" / "demo_tokenizer.json"
SCRIPT = str(ROOT / "scripts" / "train_torch.py")
LINE = re.compile(r"step (\d+) loss ([\d.]+) batch (\w+)")
SIZES = ["--seq-length", "64", "--global-batch-size", "8", "--steps", "12"]


def train(directory, processes, *flags):
    """Step -> loss and digest of the global batch, and the exit code."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    command = [sys.executable, *([*torchrun, str(processes)] if processes > 1 else []), SCRIPT]
    done = subprocess.run(
        [*command, "--directory", str(directory), *SIZES, *flags],
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'adapters' / 'torch'}",
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    found = LINE.findall(done.stdout)
    assert found, done.stderr
    return {int(step): (float(loss), digest) for step, loss, digest in found}, done.returncode


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_global_batches_on_other_processes(tmp_path):
    alone, code = train(tmp_path, 1, "--micro-batch-size", "4", "--checkpoint-interval", "100")
    assert code == 0
    assert list(alone) == list(range(1, 13))
    assert alone[12][0] < alone[1][0] - 0.5, "the loss does not fall"
    four, code = train(
        tmp_path, 4, "--micro-batch-size", "1", "--checkpoint-interval", "3", "--die-after", "5"
    )
    assert code != 0
    assert list(four) == [1, 2, 3, 4, 5]
    two, code = train(tmp_path, 2, "--micro-batch-size", "2", "--workers", "1")
    assert code == 0
    assert list(two) == list(range(4, 13))  # from the checkpoint after step 3
    for run in (four, two):
        for step, (loss, digest) in run.items():
            assert digest == alone[step][1], f"step {step} has another global batch"
            assert loss == pytest.approx(alone[step][0], abs=2e-3)
    flags = ["--data-path"]
    for share, name in (("0.7", "code"), ("0.3", "prose")):
        flags += [share, str(tmp_path / f"{name}_text_document")]
    flags += ["--tokenizer-model", str(TOKENIZER), "--split", "98,1,1", "--num-workers", "1"]
    told, code = train(tmp_path / "told", 1, *flags)
    assert code == 0
    assert {step: digest for step, (_, digest) in told.items()} == {
        step: digest for step, (_, digest) in alone.items()
    }


@pytest.mark.parametrize("flag", ["--train-samples", "--rampup-batch-size"])
def test_flags_that_it_has_no_use_for(tmp_path, flag):
    with pytest.raises(AssertionError, match=f"{flag}: this trainer takes --steps and one size"):
        train(tmp_path, 1, flag, "8")
