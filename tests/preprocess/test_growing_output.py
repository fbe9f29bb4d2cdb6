"""The output is put together while shards are being made, and goes on where it is safe."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from coredata.formats import IndexedDatasetBuilder, IndexedDatasetError, merge
from coredata.preprocess import PreprocessError, growing_output
from coredata.preprocess.growing_output import GrowingOutput
from coredata.preprocess.work import WorkDirectory

DTYPE = np.dtype(np.uint16)
SHARDS = 5
KEYS = 2


@pytest.fixture
def work(tmp_path):
    """Part files of five shards and two keys; the third shard has none of the second key."""
    directory = WorkDirectory(str(tmp_path / "out.parts"))
    os.mkdir(directory.path)
    for shard in range(SHARDS):
        for key in range(KEYS):
            with IndexedDatasetBuilder(directory.part_prefix(shard, key), DTYPE) as builder:
                for document in range(0 if (shard, key) == (2, 1) else shard + 1):
                    builder.add_document(
                        np.arange(document + 3) + 100 * shard + key, [2, document + 1]
                    )
                builder.end_document()
                builder.finalize()
    return directory


def targets(work) -> list[str]:
    return [str(Path(work.path).parent / f"all{key}") for key in range(KEYS)]


def written(work) -> list[bytes]:
    return [Path(f"{at}{end}").read_bytes() for at in targets(work) for end in (".bin", ".idx")]


def merged(work) -> list[bytes]:
    """What merging all part files at the end gives."""
    found = []
    for key in range(KEYS):
        prefix = f"{work.path}/whole{key}"
        merge([work.part_prefix(shard, key) for shard in range(SHARDS)], prefix)
        found += [Path(f"{prefix}{end}").read_bytes() for end in (".bin", ".idx")]
    return found


def run(work, shards=SHARDS):
    with GrowingOutput(work, targets(work), DTYPE) as output:
        for _ in range(shards):
            output.add()
        if shards == SHARDS:
            output.finish()


def test_it_is_what_merging_gives(work):
    run(work)
    assert written(work) == merged(work)
    assert not [name for name in os.listdir(work.path) if name.endswith("joined_0.bin")]


class Copies:
    """Which files were copied; the copy with a number fails after some bytes."""

    def __init__(self, monkeypatch, fails=None):
        self.names = []
        self._fails = fails
        monkeypatch.setattr(growing_output.shutil, "copyfileobj", self)

    def __call__(self, source, target, length):
        self.names.append(Path(source.name).name)
        if len(self.names) - 1 == self._fails:
            target.write(source.read()[:3])
            raise OSError(errno.ENOSPC, "No space left on device")
        target.write(source.read())


@pytest.mark.parametrize("fails", range(SHARDS * KEYS))
def test_it_goes_on_wherever_it_stopped(work, monkeypatch, fails):
    monkeypatch.setattr(growing_output, "_SHARE", 0)  # notes after every shard
    with monkeypatch.context() as patch:
        copies = Copies(patch, fails)
        told = r"put together in .*out.parts \(No space left on device\). Make room there"
        with pytest.raises(PreprocessError, match=told):
            run(work)
    assert len(copies.names) == fails + 1
    copies = Copies(monkeypatch)
    run(work)
    safe = fails // KEYS
    assert copies.names == [
        f"{shard:06d}_{key}.bin" for shard in range(safe, SHARDS) for key in range(KEYS)
    ]
    assert written(work) == merged(work)


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"{",
        b'{"shards": 2, "sizes": [10]}',
        b'{"shards": 2, "sizes": [100000, 10]}',
        b'{"shards": 2, "sizes": [10, 100000]}',
    ],
)
def test_a_note_that_does_not_fit_the_files_is_none(work, note):
    run(work, 3)
    Path(work.path, "joined.json").write_bytes(note)
    run(work)
    assert written(work) == merged(work)


def test_what_is_behind_the_note_is_written_again(work, monkeypatch):
    monkeypatch.setattr(growing_output, "_SHARE", 0)
    run(work, 2)
    noted = json.loads(Path(work.path, "joined.json").read_text())
    assert noted["shards"] == 2
    for key in range(KEYS):
        path = Path(work.joined_path(key))
        assert path.stat().st_size == noted["sizes"][key]
        with path.open("ab") as file:
            file.write(b"more than is known to be safe" * 99)
    run(work)
    assert written(work) == merged(work)


def test_notes_take_a_share_of_the_time(work, monkeypatch):
    clock, notes = [0.0], []

    def note(self, joined):
        notes.append(joined.shards)
        clock[0] += 1.0

    monkeypatch.setattr(growing_output.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(WorkDirectory, "note_joined", note)
    with GrowingOutput(work, targets(work), DTYPE) as output:
        for seconds in (0, 8, 0, 1, 0):
            clock[0] += seconds
            output.add()
    assert notes == [1, 4]  # 1 second for the first, so none for the next 9


def test_only_what_is_on_the_disk_is_noted(work, monkeypatch):
    order = []
    monkeypatch.setattr(growing_output.os, "fsync", lambda _: order.append("safe"))
    monkeypatch.setattr(WorkDirectory, "note_joined", lambda *_: order.append("noted"))
    monkeypatch.setattr(
        growing_output, "publish_partial", lambda *_: (_ for _ in ()).throw(InterruptedError)
    )
    with GrowingOutput(work, targets(work), DTYPE) as output:
        output.add()
        with pytest.raises(InterruptedError):
            output.finish()
    assert order == ["safe", "safe", "noted", "safe", "safe"]


def test_other_errors_of_files_stay_as_they_are(work, monkeypatch):
    def refused(*_):
        raise PermissionError("not allowed")

    monkeypatch.setattr(growing_output, "publish_partial", refused)
    with pytest.raises(PermissionError, match="not allowed"):
        run(work)


def test_a_damaged_part_is_not_taken(work):
    path = Path(f"{work.part_prefix(1, 0)}.bin")
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(IndexedDatasetError, match="000001_0"):
        run(work)
    assert not any(Path(f"{at}.idx").exists() for at in targets(work))


def test_another_writer_of_the_output_is_noticed(work, monkeypatch):
    real = growing_output.publish_partial

    def overtaken(partial, index, target, *rest):
        real(partial, index, target, *rest)
        with IndexedDatasetBuilder(target, DTYPE) as builder:
            builder.add_document([1], [1])

    monkeypatch.setattr(growing_output, "publish_partial", overtaken)
    with pytest.raises(IndexedDatasetError, match=r"has 1 sequences and 1 documents, but 30 and 2"):
        run(work)
