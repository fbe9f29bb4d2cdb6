"""What kernels call: compiled with them, and all the same whole code."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

PROGRAM = """
import numpy as np
from numba.core import codegen, event
from coredata._kernel import kernel, part

made = []
of_numba = codegen.JITCodeLibrary._finalize_specific
def finalize(self):
    made.append(self.name)
    of_numba(self)
codegen.JITCodeLibrary._finalize_specific = finalize

@part
def add(a, b):
    return a + b

@part
def checked(a):
    if a > 3:
        raise ValueError("too large:", a)
    if a == 3:
        print("three")
    return add(a, 1)

@kernel
def run(a):
    return checked(a)

print(run(2), run(3))
try:
    run(4)
except ValueError as error:
    print(*error.args)
print("add" in made, "checked" in made, checked(2))
"""


def run(program, cache):
    done = subprocess.run(
        [sys.executable, program],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        timeout=100,
        check=True,
        text=True,
    )
    return done.stdout.splitlines()


def test_a_part_prints_and_raises_and_is_compiled_with_its_kernel_alone(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    wanted = ["three", "3 4", "too large: 4", "False False 3"]
    assert run(program, tmp_path / "cache") == wanted  # compiled
    assert run(program, tmp_path / "cache") == wanted  # loaded
