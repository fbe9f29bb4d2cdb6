"""The small trainer: its loss falls, and it goes on exactly with other processes and meshes."""

import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "train_jax.py"
STEP = re.compile(r"^step (\d+) loss (\S+) batch (\w+)$", re.MULTILINE)


def steps_of(output: str) -> dict[int, tuple[str, float]]:
    return {int(step): (digest, float(loss)) for step, loss, digest in STEP.findall(output)}


@pytest.mark.slow
def test_a_run_on_two_processes_goes_on_on_one_and_another_mesh(tmp_path, port, run_jax):
    options = [SCRIPT, "--directory", tmp_path, "--steps", 9, "--seq-length", 16]
    options += ["--checkpoint-interval", 4]
    together = ["--coordinator", f"127.0.0.1:{port}", "--processes", 2, "--process"]
    first, second = run_jax(
        [[*options, "--mesh", "2,2", "--stop-after", 5, *together, rank] for rank in (0, 1)],
        devices=2,
    )
    (resumed,) = run_jax([[*options, "--mesh", "4,1"]], devices=4)
    (whole,) = run_jax([[*options, "--mesh", "1,4", "--name", "whole"]], devices=4)
    stopped, resumed, whole = steps_of(first), steps_of(resumed), steps_of(whole)
    assert not steps_of(second)
    assert list(stopped) == list(range(1, 6))
    assert list(resumed) == list(range(5, 10))
    assert list(whole) == list(range(1, 10))
    assert len({digest for digest, _ in whole.values()}) == 9
    assert whole[9][1] < whole[1][1] - 0.5
    for part in (stopped, resumed):
        for step, (digest, loss) in part.items():
            assert digest == whole[step][0], step
            assert loss == pytest.approx(whole[step][1], abs=0.02)
