"""Runs the tests in `inside/` in a process that sees eight devices."""

from pathlib import Path

import pytest

INSIDE = Path(__file__).parent / "inside"


@pytest.mark.slow
def test_with_eight_devices(run_jax):
    (out,) = run_jax([["-m", "pytest", "-q", "-p", "no:cacheprovider", INSIDE]], devices=8)
    assert " passed" in out
