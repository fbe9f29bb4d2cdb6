"""The small trainer: its loss falls, and it goes on exactly with other processes and meshes."""

import re
from pathlib import Path

import pytest

TOKENIZER = Path(__file__).parents[2] / "coredata" / "text" / "assets" / "demo_tokenizer.json"
SCRIPT = Path(__file__).parents[2] / "scripts" / "train_jax.py"
STEP = re.compile(r"^step (\d+) loss (\S+) batch (\w+)$", re.MULTILINE)


def steps_of(output: str) -> dict[int, tuple[str, float]]:
    return {int(step): (digest, float(loss)) for step, loss, digest in STEP.findall(output)}


@pytest.fixture
def train(tmp_path, free_port, run_jax):
    """Trains with eight devices shared by some processes; the steps that process 0 printed."""

    def train(processes: int, mesh: str, *options: object) -> dict[int, tuple[str, float]]:
        command = [SCRIPT, "--directory", tmp_path, "--steps", 10, "--seq-length", 16]
        command += ["--checkpoint-interval", 2, "--mesh", mesh, *options]
        commands = [command]
        if processes > 1:
            place = ["--coordinator", f"127.0.0.1:{free_port()}", "--processes", processes]
            commands = [[*command, *place, "--process", rank] for rank in range(processes)]
        first, *others = run_jax(commands, devices=8 // processes)
        assert not any(steps_of(output) for output in others)
        assert first.count("waited for data") == 1
        return steps_of(first)

    return train


@pytest.mark.slow
def test_a_run_goes_on_on_other_processes_and_another_mesh(train, tmp_path):
    """Four processes, then two, then one: data x model in every shape of eight devices."""
    whole = train(1, "4,2", "--name", "whole")
    four = train(4, "2,4", "--stop-after", 5)  # resumed from the checkpoint after step 4
    two = train(2, "4,2", "--stop-after", 7)
    one = train(1, "8,1")
    assert list(whole) == list(range(1, 11))
    assert len({digest for digest, _ in whole.values()}) == 10
    assert whole[10][1] < whole[1][1] - 0.5
    assert [list(part) for part in (four, two, one)] == [
        [1, 2, 3, 4, 5],
        [5, 6, 7],
        [7, 8, 9, 10],
    ]
    for part in (four, two, one):
        for step, (digest, loss) in part.items():
            assert digest == whole[step][0], step
            assert loss == pytest.approx(whole[step][1], abs=0.02)
    flags = ["--name", "told", "--tokenizer-model", TOKENIZER, "--split", "98,1,1"]
    shares = [("0.7", "code"), ("0.3", "prose")]
    paths = [item for share, name in shares for item in (share, tmp_path / f"{name}_text_document")]
    told = train(1, "2,4", *flags, "--data-path", *paths)
    assert [digest for digest, _ in told.values()] == [digest for digest, _ in whole.values()]
