"""A merge that was killed goes on where it was."""

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coredata.formats import (
    IndexedDataset,
    IndexedDatasetBuilder,
    IndexedDatasetError,
    merge,
    merge_kept,
    verify_block_checksums,
)
from coredata.formats.merge_kept import write_kept
from coredata.formats.stream import token_chunks

TOKENS = 5_000_000  # Two chunks, of 4 Mi tokens at most.


@pytest.fixture
def sources(tmp_path):
    prefixes = []
    for name, count in (("a", 1000), ("b", TOKENS), ("empty", 0), ("c", 300)):
        prefixes.append(str(tmp_path / name))
        with IndexedDatasetBuilder(prefixes[-1], np.uint16) as builder:
            rng = np.random.default_rng(count)
            lengths = np.full(count // 100, 100)
            builder.add_documents(rng.integers(0, 60000, lengths.sum()), lengths)
            builder.finalize()
    return prefixes


@pytest.fixture
def whole(sources, tmp_path):
    """What an undisturbed merge gives."""
    merge(sources, tmp_path / "whole")
    return [(tmp_path / f"whole{suffix}").read_bytes() for suffix in (".bin", ".idx")]


def written(tmp_path, name="all"):
    return [(tmp_path / f"{name}{suffix}").read_bytes() for suffix in (".bin", ".idx")]


def hidden(tmp_path):
    return sorted(name for name in os.listdir(tmp_path) if name.startswith("."))


def stop_after(calls):
    """Progress that is interrupted at its `calls`-th call."""
    seen = []

    def progress(done, total):
        seen.append(done)
        if len(seen) == calls:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_it_goes_on_after_an_interruption_anywhere(sources, whole, tmp_path, calls, monkeypatch):
    monkeypatch.setattr(merge_kept, "SAFE_EVERY", 1)
    target, dtype = str(tmp_path / "all"), np.dtype(np.uint16)
    with pytest.raises(KeyboardInterrupt):
        write_kept(sources, target, dtype, False, False, None, stop_after(calls), 1)
    assert hidden(tmp_path) == [".all.bin.merging", ".all.merging.json"]
    assert not (tmp_path / "all.bin").exists()
    seen = []
    merge(sources, target, progress=lambda done, total: seen.append((done, total)))
    assert written(tmp_path) == whole
    assert hidden(tmp_path) == []
    chunks_left = 4 - calls
    assert len(seen) == chunks_left
    assert all(total == len(whole[0]) for _, total in seen)


def test_checksums_after_an_interruption(sources, tmp_path):
    target, dtype = str(tmp_path / "all"), np.dtype(np.uint16)
    with pytest.raises(KeyboardInterrupt):
        write_kept(sources, target, dtype, False, False, None, stop_after(2), 1, checksums=True)
    seen = []
    merge(sources, target, checksums=True, progress=lambda done, total: seen.append(done))
    assert len(seen) == 2
    assert hidden(tmp_path) == []
    assert verify_block_checksums(target).size == (tmp_path / "all.bin").stat().st_size
    merge(sources, target)
    assert not (tmp_path / "all.crc").exists()


MERGE = """
import resource, sys
from coredata.formats import merge
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    merge(sys.argv[3:], sys.argv[1])
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [9_000_000, 200_000, 1000])
def test_a_disk_that_takes_no_more(sources, whole, tmp_path, limit):
    target = tmp_path / "all"
    command = [sys.executable, "-c", MERGE, str(target), str(limit), *sources]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    match = re.fullmatch(
        rf"{target} cannot be written to its end \(File too large\). ([\d,]+) of "
        rf"{len(whole[0]):,} bytes of tokens are kept in {tmp_path}/.all.bin.merging. Make room "
        "there \\(see df, quota and ulimit -f\\), and the same merge goes on from them; or delete "
        rf"it and {tmp_path}/.all.merging.json, and give another output prefix "
        "\\(--output-prefix\\)\n",
        told,
    )
    assert match is not None, told
    kept = int(match[1].replace(",", ""))
    assert max(limit - 100_000, 0) <= kept <= limit
    seen = []
    merge(sources, target, progress=lambda done, total: seen.append(done))
    assert written(tmp_path) == whole
    assert hidden(tmp_path) == []
    assert seen[0] > kept or kept == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_room_for_the_index(sources, whole, tmp_path, monkeypatch, number):
    def full(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(merge_kept.GrowingIndex, "write", full)
        with pytest.raises(OSError, match=rf"{len(whole[0]):,} of {len(whole[0]):,} bytes of tok"):
            merge(sources, tmp_path / "all")
    assert hidden(tmp_path) == [".all.bin.merging", ".all.merging.json"]
    seen = []
    merge(sources, tmp_path / "all", progress=lambda done, total: seen.append(done))
    assert (seen, written(tmp_path)) == ([], whole)


def test_a_killed_process(sources, whole, tmp_path):
    code = (
        "import sys, time\n"
        "import numpy as np\n"
        "from coredata.formats.merge_kept import write_kept\n"
        "def wait(done, total):\n"
        "    print(done, flush=True)\n"
        "    time.sleep(60 if done > 3_000_000 else 0)\n"
        "write_kept(sys.argv[2:], sys.argv[1], np.dtype(np.uint16), False, False, None, wait, 1)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "all"), *sources], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]
    with pytest.raises(IndexedDatasetError, match=r"another process is merging into .*all; wait"):
        merge(sources, tmp_path / "all")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert int(lines[1]) > 3_000_000
    seen = []
    merge(sources, tmp_path / "all", progress=lambda done, total: seen.append(done))
    assert written(tmp_path) == whole
    assert len(seen) == 2


def test_other_inputs_begin_anew(sources, tmp_path):
    target = str(tmp_path / "all")
    with pytest.raises(KeyboardInterrupt):
        write_kept(sources, target, np.dtype(np.uint16), False, False, None, stop_after(3), 1)
    os.utime(f"{sources[0]}.bin", ns=(0, time.time_ns()))
    seen = []
    merge(sources, target, progress=lambda done, total: seen.append(done))
    assert len(seen) == 4
    assert np.array_equal(IndexedDataset(target)[0], IndexedDataset(sources[0])[0])


@pytest.mark.parametrize("journal", [b"", b"{", b"[1]", b'{"plan": 1, "bytes": 9}', None])
def test_a_journal_that_says_nothing(sources, whole, tmp_path, journal):
    (tmp_path / ".all.bin.merging").write_bytes(b"x" * 3000)
    if journal is not None:
        (tmp_path / ".all.merging.json").write_bytes(journal)
    merge(sources, tmp_path / "all")
    assert written(tmp_path) == whole


def test_a_journal_that_says_more_than_there_is(sources, whole, tmp_path):
    target = str(tmp_path / "all")
    with pytest.raises(KeyboardInterrupt):
        write_kept(sources, target, np.dtype(np.uint16), False, False, None, stop_after(3), 1)
    os.truncate(tmp_path / ".all.bin.merging", 100)
    merge(sources, target)
    assert written(tmp_path) == whole


def test_a_file_that_another_process_finished_meanwhile(sources, whole, tmp_path, monkeypatch):
    """Between opening the partial file and its lock, it became the output: it must not be cut."""
    partial = tmp_path / ".all.bin.merging"
    partial.write_bytes(b"finished")
    real, moved = fcntl.flock, []

    def flock(file, operation):
        if not moved:
            moved.append(partial.rename(tmp_path / "finished"))
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    merge(sources, tmp_path / "all")
    assert (tmp_path / "finished").read_bytes() == b"finished"
    assert written(tmp_path) == whole


def test_the_directory_must_exist(sources, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the directory .*none does not exist; create it"):
        merge(sources, tmp_path / "none" / "all")


def test_the_journal_names_what_it_is_of(sources, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_kept(
            sources, str(tmp_path / "all"), np.dtype("i4"), False, True, None, stop_after(2), 1
        )
    noted = json.loads((tmp_path / ".all.merging.json").read_text())
    assert noted["plan"]["dtype"] == "int32"
    assert [source[0] for source in noted["plan"]["sources"]] == sources
    assert noted["bytes"] == 4 * (1000 + (4 << 20))


@given(st.integers(0, 60), st.integers(1, 70))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_chunks_from_any_token_on(write, start, chunk):
    prefix = write([[[1, 2, 3], []], [], [list(range(40))], [[7], [8, 9]]])
    dataset = IndexedDataset(prefix)
    flat = np.concatenate([dataset[i] for i in range(len(dataset))])
    pieces = list(token_chunks(dataset, np.dtype(np.int64), chunk, start))
    found = np.concatenate([np.empty(0, np.int64), *pieces])
    np.testing.assert_array_equal(found, flat[start:])
    assert all(0 < piece.size <= chunk for piece in pieces)
    assert Path(f"{prefix}.bin").stat().st_size == flat.nbytes
