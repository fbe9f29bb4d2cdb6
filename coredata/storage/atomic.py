"""Files that appear under their name only when they are complete.

A file is written under a temporary name, and published when everything in it is safe. Two files
that belong together are both prepared first, then published one after the other, the one that
readers look for last.
"""

import contextlib
import io
import os
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, BinaryIO, final

from coredata.storage.multipart import MultipartUpload
from coredata.storage.options import read_options
from coredata.storage.paths import local_path
from coredata.storage.remote import filesystem
from coredata.storage.retry import Retry

_BUFFER = 1 << 20
_NAME_KEPT = 200
_S3 = ("s3://", "s3a://")


class PendingFile(ABC):
    """A file being written, not yet visible under its name.

    As a context manager it is published on a clean exit, and aborted on any exception,
    KeyboardInterrupt included.
    """

    path: str
    file: BinaryIO

    @abstractmethod
    def prepare(self) -> None:
        """Make the written bytes safe (flushed, synchronised) without publishing them.

        Nothing can be written after it; calling it again does nothing.
        """

    @abstractmethod
    def publish(self) -> None:
        """Let the file appear under its name, replacing what was there; `prepare` comes first."""

    @abstractmethod
    def abort(self) -> None:
        """Throw the bytes away; what was under the name stays. Harmless after `publish`."""

    def __enter__(self) -> "PendingFile":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if exc_type is None:
                self.prepare()
                self.publish()
        finally:
            self.abort()


def begin_write(
    path: str,
    storage_options: Mapping[str, Any] | None = None,
    *,
    durable: bool = True,
    temporary: str | None = None,
) -> PendingFile:
    """Start a file that will appear at `path` once it is complete.

    A local file is written beside its final name, then renamed. An S3 object is uploaded in parts
    while it is written, in bounded memory; the upload is completed last. Other URLs are staged in
    the local temporary directory (`TMPDIR`), then uploaded in one go.

    Without `durable`, a local file is not waited for to be on the disk: it outlives this process,
    and after a crash of the machine it may be there and not hold what was written. `temporary` is
    the path, on the same file system, under which it is written; by default a new name beside it,
    which stays if the process is killed.

    Raises:
        FileNotFoundError: the local directory does not exist.
    """
    local = local_path(path)
    if local is not None:
        return _LocalFile(path, local, durable, temporary)
    if path.startswith(_S3):
        return _StreamedUpload(path, storage_options)
    return _StagedUpload(path, storage_options)


@contextlib.contextmanager
def atomic_write(
    path: str, storage_options: Mapping[str, Any] | None = None, *, durable: bool = True
) -> Iterator[BinaryIO]:
    """A binary file that appears at `path` on a clean exit, and never otherwise.

    See `begin_write`.

    Raises:
        FileNotFoundError: the local directory does not exist.
    """
    with begin_write(path, storage_options, durable=durable) as pending:
        yield pending.file


def remove(path: str, storage_options: Mapping[str, Any] | None = None) -> None:
    """Delete the file at `path`, if there is one."""
    local = local_path(path)
    if local is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(local)
        return
    remote, key = filesystem(path, storage_options)
    if remote.exists(key):
        remote.rm_file(key)


@final
class _LocalFile(PendingFile):
    """Written to a hidden name in the same directory, so that the rename is atomic."""

    def __init__(self, path: str, local: str, durable: bool, temporary: str | None) -> None:
        self.path = path
        self._final = local
        self._durable = durable
        directory, name = os.path.split(os.path.abspath(local))
        if not os.path.isdir(directory):
            raise FileNotFoundError(
                f"cannot write {path}: the directory {directory} does not exist; create it first"
            )
        self._directory = directory
        unused = f".{name[:_NAME_KEPT]}.{uuid.uuid4().hex[:12]}.tmp"
        self._temporary = temporary or os.path.join(directory, unused)
        # Not mkstemp: the file is to have the permissions that the user's umask gives.
        if temporary:
            self.file = open(self._temporary, "wb", buffering=_BUFFER)  # noqa: SIM115
        else:
            self.file = open(self._temporary, "xb", buffering=_BUFFER)  # noqa: SIM115
        self._published = False

    def prepare(self) -> None:
        if self.file.closed:
            return
        self.file.flush()
        if self._durable:
            os.fsync(self.file.fileno())
        self.file.close()

    def publish(self) -> None:
        os.replace(self._temporary, self._final)
        self._published = True
        if not self._durable:
            return
        # Some file systems cannot synchronise a directory; the rename is atomic all the same.
        with contextlib.suppress(OSError):
            descriptor = os.open(self._directory, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def abort(self) -> None:
        if self._published:
            return
        # A full disk makes the last flush fail; the bytes are thrown away anyway.
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)


@final
class _StreamedUpload(PendingFile):
    """Uploaded in parts while it is written; nothing of it is kept on this machine."""

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None) -> None:
        self.path = path
        self._upload = MultipartUpload(path, storage_options)
        self.file = io.BufferedWriter(self._upload, _BUFFER)

    def prepare(self) -> None:
        self.file.flush()
        self._upload.prepare()

    def publish(self) -> None:
        self._upload.publish()

    def abort(self) -> None:
        self._upload.discard()


@final
class _StagedUpload(PendingFile):
    """Written to a local temporary file, uploaded when complete.

    Object stores show an object only when its upload has ended, so what is never uploaded is
    never seen. An upload that fails is tried again, whole.
    """

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None) -> None:
        self.path = path
        self._storage_options = storage_options
        self._remote, self._key = filesystem(path, storage_options)
        descriptor, self._staged = tempfile.mkstemp(prefix="coredata-")
        self.file = os.fdopen(descriptor, "wb", buffering=_BUFFER)

    def prepare(self) -> None:
        self.file.close()

    def publish(self) -> None:
        retry = Retry(read_options(self._storage_options).deadline)
        retry.run(f"write {self.path}", self._upload, _nothing, _nothing)

    def _upload(self) -> None:
        parent = self._remote._parent(self._key)
        if parent:
            self._remote.makedirs(parent, exist_ok=True)
        self._remote.put_file(self._staged, self._key)

    def abort(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._staged)


def _nothing() -> None:
    """Done before another try: the file system renews its credentials itself."""
