"""Beyond 2^31: bytes, tokens, and 31 million documents in bounded memory."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import coredata
from coredata.formats import (
    IndexedDataset,
    get_bin_path,
    get_idx_path,
    sequence_pointers,
    verify_indexed,
    write_index,
)


@pytest.fixture
def sparse(tmp_path):
    """Three sequences of 2^31 - 1, 5 and 3 tokens; only the last six tokens take space on disk."""

    def write(dtype):
        prefix = str(tmp_path / "sparse")
        lengths = np.array([2**31 - 1, 5, 3], np.int32)
        with open(get_idx_path(prefix), "wb") as file:
            write_index(file, np.dtype(dtype), lengths, np.array([0, 1, 3], np.int64))
        tail = np.arange(1, 7, dtype=dtype)
        with open(get_bin_path(prefix), "wb") as file:
            os.truncate(file.fileno(), int(lengths.sum(dtype=np.int64)) * tail.itemsize)
            file.seek(-tail.nbytes, os.SEEK_END)
            file.write(tail.tobytes())
        return prefix

    return write


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_tokens_past_two_to_the_31(sparse, dtype, mmap):
    prefix = sparse(dtype)
    dataset = IndexedDataset(prefix, mmap=mmap)
    itemsize = np.dtype(dtype).itemsize
    assert dataset.sequence_pointers.tolist() == [
        0,
        (2**31 - 1) * itemsize,
        (2**31 + 4) * itemsize,
    ]
    assert dataset.identity()["tokens"] == 2**31 + 7
    assert dataset[1].tolist() == [0, 0, 1, 2, 3]
    assert dataset[2].tolist() == [4, 5, 6]
    assert [array.tolist() for array in dataset[1:3]] == [[0, 0, 1, 2, 3], [4, 5, 6]]
    assert dataset.get(0, 2**31 - 3, 2).tolist() == [0, 0]
    out = np.full(6, 9, np.int64)
    dataset.read_into(
        np.array([2, 0, 1]),
        np.array([1, 2**31 - 2, 2]),
        np.array([2, 1, 3]),
        out,
        np.array([0, 2, 3]),
    )
    assert out.tolist() == [5, 6, 0, 1, 2, 3]


def test_it_verifies(sparse):
    prefix = sparse(np.int32)
    assert verify_indexed(prefix).tokens == 2**31 + 7


def test_a_plan_for_a_hundred_billion_tokens():
    lengths = np.full(100_000, 1_000_000, np.int32)
    pointers = sequence_pointers(lengths, 4)
    assert pointers[-1] == 99_999 * 4_000_000
    assert (np.diff(pointers) == 4_000_000).all()


WRITE_AND_READ = """
import sys
import numpy as np
from coredata.formats import IndexedDataset, IndexedDatasetBuilder, verify_indexed

prefix, batches, batch = sys.argv[1], 31, 1_000_000
tokens, lengths = np.ones(batch, np.uint8), np.ones(batch, np.int32)
with IndexedDatasetBuilder(prefix, np.uint8) as builder:
    for _ in range(batches):
        builder.add_documents(tokens, lengths)
    builder.finalize()
verified = verify_indexed(prefix)
assert verified.documents == batches * batch, verified
assert IndexedDataset(prefix).document_indices[-1] == batches * batch
# Not ru_maxrss: a new process takes over the peak of the one that started it.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
def test_an_index_of_31_million_documents_takes_under_two_gigabytes(tmp_path):
    prefix = str(tmp_path / "many")
    run = subprocess.run(
        [sys.executable, "-c", WRITE_AND_READ, prefix],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(coredata.__file__).parents[1],
    )
    assert os.path.getsize(get_idx_path(prefix)) == 34 + 31_000_000 * 20 + 8
    peak = int(run.stdout) * 1024
    assert peak < 2e9
