"""JAX starts threads, which the forks of other tests would not survive, and fixes its devices then.

So what imports it is in `inside/` and runs in processes of its own.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

collect_ignore = [] if os.environ.get("COREDATA_TESTS_WITH_JAX") else ["inside"]


def environment(devices: int) -> dict[str, str]:
    """Of a process that sees this many CPU devices, and what the tests import."""
    paths = [HERE / "inside", ROOT, ROOT / "adapters" / "jax"]
    return {
        **os.environ,
        "COREDATA_TESTS_WITH_JAX": "1",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # Compiling is most of the time.
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }


def run_together(commands: Sequence[Sequence[str]], devices: int, timeout: float = 600):
    """Run Python with each of these arguments at once; what each wrote to standard output."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [
        subprocess.Popen(
            [sys.executable, *map(str, command)], cwd=ROOT, env=environment(devices), **pipes
        )
        for command in commands
    ]
    try:
        outputs = [process.communicate(timeout=timeout) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    codes = [process.returncode for process in running]
    assert not any(codes), "\n".join([str(codes), *(out + err[-6000:] for out, err in outputs)])
    return [out for out, _ in outputs]


@pytest.fixture
def run_jax() -> Callable[..., list[str]]:
    """`run_together`: Python processes with JAX."""
    return run_together


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Finds a port for the coordinator of several processes."""

    def find() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    return find
