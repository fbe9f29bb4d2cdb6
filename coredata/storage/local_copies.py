"""Copies of remote objects on a local disk, made once for all processes of a host.

A copy is two files, named after the URL, and after size and ETag (or time) of the version that was
copied: the bytes of the object, and beside them `.json` with their checksum, written last. Both
appear by rename. One process downloads, and the others wait for a lock that the kernel takes from
a process that dies; the next one then downloads. Nothing depends on the lock but that work is done
once.

The checksum is compared whenever the file is not, by time and inode, the one that was written or
checked before, and after every start of the machine: so a copy that was damaged by a crash, or by
another program, is found and made again. Older versions of an object are removed when a new one
is copied.
"""

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import UInt8
from coredata.storage.atomic import atomic_write
from coredata.storage.block_checksums import ChecksumError
from coredata.storage.downloading import PIECE, download
from coredata.storage.faults import ObjectChangedError
from coredata.storage.file_lock import exclusive
from coredata.storage.local_files import MappedFile
from coredata.storage.options import read_options
from coredata.storage.service import ReadService, RemoteObject, read_service

_TRIES = 5
_DAMAGED_TRIES = 3
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
_PIECE = 1 << 20


@dataclass(frozen=True)
class _Record:
    """What stands in the `.json` file of a copy."""

    url: str
    size: int
    version: str
    checksum: int
    seen: str


@dataclass(frozen=True)
class LocalCopies:
    """A directory of copies. It may be shared by processes, and is made when first needed.

    Attributes:
        directory: on a disk of this host; see `exclusive` for what NFS changes.
    """

    directory: str

    def open(
        self,
        url: str,
        storage_options: Mapping[str, Any] | None = None,
        checksum: int | None = None,
    ) -> UInt8[np.ndarray, " size"]:
        """The bytes of the object in its present state, mapped from a local copy.

        Args:
            url: of the object.
            storage_options: for fsspec, and for reading.
            checksum: CRC-32 that the bytes must have, if it is known.

        Raises:
            FileNotFoundError, PermissionError, StorageError: the object cannot be read.
            ObjectChangedError: it is being replaced all the time.
            ChecksumError: bytes came three times that have another checksum.
            OSError: the directory cannot be written, or its disk is full; the text names it.
            ValueError: storage tells nothing by which a change could be seen.
        """
        service = read_service(read_options(storage_options))
        for _ in range(_TRIES):
            what = service.open(url, storage_options)
            if not what.facts.version:
                raise ValueError(
                    f"{url}: storage tells neither an ETag nor a time of change, so that a copy "
                    "of it could not be recognised as stale"
                )
            with contextlib.suppress(ObjectChangedError):
                return _Copy(self.directory, service, what, checksum).open()
        raise ObjectChangedError(
            f"{url} was replaced {_TRIES} times while it was copied to {self.directory}; open it "
            "when it is complete"
        )


class _Copy:
    """The copy of one version of one object."""

    def __init__(
        self, directory: str, service: ReadService, what: RemoteObject, checksum: int | None
    ) -> None:
        self._directory, self._service, self._what = directory, service, what
        self._expected = checksum
        self._stem = os.path.join(directory, _digest(what.url)[:32])
        version = f"{what.facts.size} {what.facts.version}"
        self._path = f"{self._stem}-{_digest(version)[:16]}"

    def open(self) -> UInt8[np.ndarray, " size"]:
        """The copy, mapped; made if need be."""
        found = self._known()
        if found is not None:
            return found
        try:
            os.makedirs(self._directory, exist_ok=True)
            with exclusive(f"{self._stem}.lock") as held:
                if held:
                    self._sweep()
                found = self._known()  # by the process that had the lock before
                if found is None:
                    found = self._checked()
                if found is None:
                    found = self._downloaded()
                return found
        except OSError as error:
            ours = str(error.filename or "").startswith(self._directory)
            if error.errno in _FULL or (ours and error.errno in _REFUSED):
                raise self._unwritable(error) from error
            raise

    def _known(self) -> UInt8[np.ndarray, " size"] | None:
        """The copy, if it is the very file whose checksum was right before."""
        record = self._record()
        if record is None:
            return None
        with contextlib.suppress(FileNotFoundError):
            before = _identity(self._path)
            data = _map(self._path)
            if before == record.seen and data.size == record.size:
                return data
        return None

    def _checked(self) -> UInt8[np.ndarray, " size"] | None:
        """The copy, if its checksum is right; that is then noted."""
        record = self._record()
        if record is None:
            return None
        try:
            seen = _identity(self._path)
            data = _map(self._path)
        except FileNotFoundError:
            return None
        if data.size != record.size or _checksum(data) != record.checksum:
            return None
        self._note(dataclasses.replace(record, seen=seen))
        return data

    def _downloaded(self) -> UInt8[np.ndarray, " size"]:
        """The copy, newly made.

        Raises:
            ObjectChangedError: the object is not what it was any more.
        """
        what = self._what
        temporary = f"{self._stem}.{os.getpid()}.{uuid.uuid4().hex[:12]}.tmp"
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            checksum = self._fill(descriptor)
            os.fsync(descriptor)
            # Where requests demand the version, it was the right one all the time.
            if not what.facts.demand and (
                self._service.open(what.url, what.storage_options).facts != what.facts
            ):
                raise ObjectChangedError(f"{what.url} changed while it was copied")
            self._remove_versions()
            os.replace(temporary, self._path)
        finally:
            os.close(descriptor)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        seen = _identity(self._path)
        self._note(_Record(what.url, what.facts.size, what.facts.version, checksum, seen))
        return _map(self._path)

    def _fill(self, descriptor: int) -> int:
        """Download into an open file; its checksum, which is the one expected."""
        for _ in range(_DAMAGED_TRIES):
            checksum = 0
            for piece in download(self._service, self._what, descriptor, PIECE):
                checksum = zlib.crc32(piece, checksum)
            if self._expected in (None, checksum):
                return checksum
        raise ChecksumError(
            f"{self._what.url} has the checksum {checksum:08x}, and {self._expected:08x} was "
            f"written with it; it came so {_DAMAGED_TRIES} times: what is stored is damaged, write "
            "it again"
        )

    def _note(self, record: _Record) -> None:
        with atomic_write(f"{self._path}.json") as file:
            file.write(json.dumps(dataclasses.asdict(record), indent=1).encode())

    def _record(self) -> _Record | None:
        """What was noted about the copy; None if nothing sound was."""
        try:
            with open(f"{self._path}.json", "rb") as file:
                record = _Record(**json.loads(file.read()))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None
        what = self._what
        expected = (what.url, what.facts.size, what.facts.version)
        if (record.url, record.size, record.version) != expected:
            return None
        return record if self._expected in (None, record.checksum) else None

    def _sweep(self) -> None:
        """Remove what processes that died while they downloaded have left."""
        for name in self._names("."):
            if name.endswith(".tmp") and name.split(".")[-3] != str(os.getpid()):
                _unlink(os.path.join(self._directory, name))

    def _remove_versions(self) -> None:
        """Remove copies of other versions; processes that have them mapped keep them."""
        for name in self._names("-"):
            _unlink(os.path.join(self._directory, name))

    def _names(self, then: str) -> list[str]:
        """Files of this object, of any version, whose names go on with `then`."""
        begin = os.path.basename(self._stem) + then
        return [name for name in os.listdir(self._directory) if name.startswith(begin)]

    def _unwritable(self, error: OSError) -> OSError:
        what = f"{self._what.url} ({self._what.facts.size} bytes)"
        return OSError(
            error.errno,
            f"cannot keep a copy of {what} in {self._directory}: {error.strerror}; "
            "make room there, or name another directory (the environment "
            'variable COREDATA_CACHE, or "copies" in the options for reading)',
        )


def local_copies(storage_options: Mapping[str, Any] | None) -> LocalCopies:
    """The copies that storage options ask for.

    `ReadOptions.copies` names the directory; without it that is the environment variable
    `COREDATA_CACHE`, or else `coredata` in the user's cache directory.
    """
    options = read_options(storage_options)
    return LocalCopies(options.copies or _default_directory())


def _default_directory() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("COREDATA_CACHE") or os.path.join(base, "coredata")


def _map(path: str) -> np.ndarray:
    return MappedFile(path).view()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _checksum(data: np.ndarray) -> int:
    checksum = 0
    for begin in range(0, data.size, _PIECE):
        checksum = zlib.crc32(data[begin : begin + _PIECE].data, checksum)
    return checksum


def _identity(path: str) -> str:
    """Which file this is, and since when it is as it is; different after the machine started."""
    status = os.stat(path)
    return f"{status.st_dev}.{status.st_ino} {status.st_size} {status.st_mtime_ns} {_boot()}"


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:  # other systems than Linux
        return ""


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
