"""What the training scripts say in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_an_error_is_one_line(tmp_path):
    done = run("train_torch.py", "--directory", str(tmp_path), "--data-path", "nowhere")
    assert done.returncode == 1
    assert done.stderr.startswith("train_torch.py: ")
    assert "Traceback" not in done.stderr
