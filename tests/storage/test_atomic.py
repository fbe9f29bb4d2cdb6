import os
import stat

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from coredata.storage import StorageError, atomic_write, begin_write, read_bytes, remove


@pytest.fixture(params=["local", "file", "memory"])
def path(request, tmp_path, monkeypatch):
    staging = tmp_path / "staging"
    staging.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(staging))
    if request.param == "memory":
        return f"memory://atomic{tmp_path}/x.bin"
    (tmp_path / "out").mkdir()
    return ("file://" if request.param == "file" else "") + str(tmp_path / "out" / "x.bin")


def write_half(path, error):
    with atomic_write(path) as file:
        file.write(b"half")
        raise error("stop")


def left_over(tmp_path):
    return sorted(name for _, _, names in os.walk(tmp_path) for name in names)


def test_a_file_appears_on_a_clean_exit(path, tmp_path):
    with atomic_write(path) as file:
        file.write(b"one")
        file.write(b"two")
        with pytest.raises(FileNotFoundError):
            read_bytes(path)
    assert read_bytes(path) == b"onetwo"
    assert left_over(tmp_path) in ([], ["x.bin"])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_aborted_file_leaves_nothing(path, tmp_path, error):
    with pytest.raises(error):
        write_half(path, error)
    assert left_over(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        read_bytes(path)


def test_an_aborted_file_leaves_the_old_one(path):
    with atomic_write(path) as file:
        file.write(b"old")
    with pytest.raises(ValueError, match="stop"):
        write_half(path, ValueError)
    assert read_bytes(path) == b"old"
    with atomic_write(path) as file:
        file.write(b"new")
    assert read_bytes(path) == b"new"


def test_preparing_twice_and_aborting_after_publishing_are_harmless(path):
    pending = begin_write(path)
    pending.file.write(b"x")
    pending.prepare()
    pending.prepare()
    pending.publish()
    pending.abort()
    assert read_bytes(path) == b"x"


def test_remove(path):
    remove(path)
    with atomic_write(path) as file:
        file.write(b"x")
    remove(path)
    with pytest.raises(FileNotFoundError):
        read_bytes(path)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"directory .*/nowhere does not exist; create it"):
        begin_write(str(tmp_path / "nowhere" / "x.bin"))


def test_permissions_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        with atomic_write(str(tmp_path / "x")) as file:
            file.write(b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_long_names_fit(tmp_path):
    path = str(tmp_path / ("x" * 250))
    with atomic_write(path) as file:
        file.write(b"x")
    assert read_bytes(path) == b"x"


def test_a_failed_flush_leaves_nothing(tmp_path):
    pending = begin_write(str(tmp_path / "x"))
    os.close(pending.file.fileno())
    pending.file.write(b"x")
    with pytest.raises(OSError, match="Bad file descriptor"), pending:
        pass
    assert left_over(tmp_path) == []


def test_remote_directories_are_made():
    with atomic_write("memory://atomic/deep/er/x") as file:
        file.write(b"x")
    assert fsspec.filesystem("memory").cat("/atomic/deep/er/x") == b"x"


class Refusing:
    """`put_file` of a file system, which fails so many times first."""

    def __init__(self, monkeypatch, times):
        self.left, self.put = times, MemoryFileSystem.put_file
        monkeypatch.setattr(MemoryFileSystem, "put_file", lambda *args: self(*args))

    def __call__(self, remote, staged, key):
        self.left -= 1
        if self.left >= 0:
            raise ConnectionResetError("injected")
        self.put(remote, staged, key)


def test_an_upload_that_fails_is_tried_again(monkeypatch, tmp_path):
    refusing = Refusing(monkeypatch, 2)
    with atomic_write(f"memory://atomic{tmp_path}/again") as file:
        file.write(b"x")
    assert refusing.left == -1
    assert read_bytes(f"memory://atomic{tmp_path}/again") == b"x"


def test_an_upload_that_does_not_come_through_names_the_file(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Refusing(monkeypatch, 1000)
    options = {"coredata": {"deadline": 0.2}}
    with (
        pytest.raises(StorageError, match=r"write memory://.*/never: failed \d times .* injected"),
        atomic_write("memory://atomic/never", options) as file,
    ):
        file.write(b"x")
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(("durable", "waits"), [(True, 2), (False, 0)])
def test_only_durable_files_are_waited_for(tmp_path, monkeypatch, durable, waits):
    waited = []
    monkeypatch.setattr("os.fsync", waited.append)
    with atomic_write(str(tmp_path / "x"), durable=durable) as file:
        file.write(b"one")
    assert read_bytes(str(tmp_path / "x")) == b"one"
    assert len(waited) == waits
