"""Runs the tests in `inside/` in a process that sees eight devices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.slow
def test_with_eight_devices():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "inside")],
        cwd=ROOT,
        env={
            **os.environ,
            "COREDATA_TESTS_WITH_JAX": "1",
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": str(HERE / "inside"),
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
