"""Local token files need numpy and numba, and nothing else."""

import subprocess
import sys
from pathlib import Path

import coredata

ROOT = Path(coredata.__file__).parents[1]

BARE = """
import sys
for name in ("fsspec", "tokenizers", "pyarrow", "jaxtyping", "zstandard", "torch", "jax"):
    sys.modules[name] = None
import numpy as np
from coredata.formats import IndexedDataset, IndexedDatasetBuilder, merge, verify_indexed

prefix = sys.argv[1]
with IndexedDatasetBuilder(prefix, np.uint16) as builder:
    builder.add_document([1, 2, 3], [2, 1])
    builder.finalize()
for mmap in (True, False):
    dataset = IndexedDataset(prefix, mmap=mmap)
    out, zero = np.zeros(2, np.int64), np.array([0])
    dataset.read_into(zero, zero, np.array([2]), out, zero)
    assert out.tolist() == [1, 2], out
assert IndexedDataset("file://" + prefix)[1].tolist() == [3]
assert merge([prefix], prefix + "2") .tokens == 3
verify_indexed(prefix + "2", vocab_size=4)
try:
    IndexedDataset("memory://x")
except ModuleNotFoundError as error:
    print(error)
"""

COST = """
import sys
import coredata.formats
print(sorted({"fsspec", "tokenizers", "pyarrow", "zstandard", "torch", "jax"} & sys.modules.keys()))
"""


def run(code, *arguments):
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_any_optional_package(tmp_path):
    assert run(BARE, str(tmp_path / "x")) == (
        "memory://x.idx is a URL, and URLs are read through fsspec, which is not installed; "
        "pip install fsspec"
    )


def test_importing_the_room_imports_no_backend():
    assert run(COST) == "[]"
