"""The sides of the grid run in processes of their own, which live as long as the tests here."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from coredata.testing import random_corpus, write_corpus

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECONDS = 240

collect_ignore = ["sides"]


class Program:
    """The processes of one program of one framework."""

    def __init__(self, directory: Path, name: str, commands: list[list[str]], devices: int) -> None:
        paths = [HERE / "sides", ROOT, ROOT / "adapters" / "torch", ROOT / "adapters" / "jax"]
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        }
        self.logs = [directory / f"{name}-{number}.log" for number in range(len(commands))]
        self.processes = []
        for command, log in zip(commands, self.logs, strict=True):
            with log.open("w") as file:
                process = subprocess.Popen(
                    [sys.executable, *command],
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=file,
                    text=True,
                )
            self.processes.append(process)

    def answers(self) -> list[Any]:
        """One answer of each process."""
        return [self._answer(number) for number in range(len(self.processes))]

    def _answer(self, number: int) -> Any:
        pipe = self.processes[number].stdout
        assert pipe is not None
        ready, _, _ = select.select([pipe], [], [], SECONDS)
        line = pipe.readline() if ready else ""
        assert line, "\n".join(log.read_text()[-3000:] for log in self.logs)
        return json.loads(line)

    def run(self, job: dict[str, Any]) -> Any:
        """Give all processes a job; their state after it, which must be the same."""
        for process in self.processes:
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # It has ended: its answer will be missing.
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
        states = self.answers()
        assert all(state == states[0] for state in states), states
        return states[0]

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="package")
def data(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("grid")
    write_corpus(directory / "one", random_corpus(7, documents=60, longest=40))
    write_corpus(directory / "two", random_corpus(8, documents=30, longest=70))
    return directory


@pytest.fixture(scope="package")
def programs(data) -> Iterator[dict[tuple[str, int], Program]]:
    """(framework, processes) -> its program; PyTorch starts as many as a job needs by itself."""
    commands = {("numpy", 0): [["numpy_side.py"]], ("torch", 0): [["torch_side.py"]]}
    for size in (1, 2, 4):
        port = str(_port())
        commands["jax", size] = [["jax_side.py", str(size), str(n), port] for n in range(size)]
    found = {}
    with ExitStack() as stack:
        for (framework, size), each in commands.items():
            each = [[str(HERE / "sides" / file), *rest] for file, *rest in each]
            program = Program(data, f"{framework}{size}", each, 8 // max(size, 1))
            stack.callback(program.stop)
            found[framework, size] = program
        for program in found.values():
            assert set(program.answers()) == {"ready"}
        yield found
