"""Writing an S3 object in parts while it is produced; it appears when all of it is there."""

import io
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, final

from coredata.storage.options import read_options
from coredata.storage.remote import filesystem, reading_options
from coredata.storage.retry import Retry

FIRST_PART = 8 << 20
_DOUBLE_AFTER = 1250
_MOST_PARTS = 10_000
_TOGETHER = 3
_CONNECTIONS = 33
_SLOWEST = 256 << 10
"""Bytes a second: an upload slower than that is tried again."""


def part_size(number: int, first: int = FIRST_PART) -> int:
    """Bytes in part `number`, from 0: parts grow, since S3 takes 10,000 of them at most.

    2.4 TiB fit: 8 MiB a part up to 10 GiB, 128 MiB a part at 200 GiB, 1 GiB at the end.
    """
    return first << (number // _DOUBLE_AFTER)


@final
class MultipartUpload(io.RawIOBase):
    """A file to write to, whose full parts are uploaded in the background, three at a time.

    Memory holds four parts at most. An object smaller than one part is sent in one request at the
    end. Requests that fail are retried as for reading. Until `publish` nothing is visible, and
    what was there stays. Parts of a process that is killed stay in the bucket, unseen, until a
    lifecycle rule of the bucket removes them (AbortIncompleteMultipartUpload); so does an upload
    without parts whose beginning was asked for twice, since the first answer was lost.

    Args:
        url: `s3://bucket/key`.
        storage_options: for fsspec, and for reading (`deadline`, `timeout`).
        first_part: bytes in the first parts; at least 5 MiB for S3.
    """

    mode = "wb"

    def __init__(
        self,
        url: str,
        storage_options: Mapping[str, Any] | None = None,
        first_part: int = FIRST_PART,
    ) -> None:
        super().__init__()
        self._url = self.name = url
        self._storage_options = storage_options
        self._first_part = first_part
        self._options = read_options(storage_options)
        own = reading_options(url, storage_options, _CONNECTIONS)
        del own["skip_instance_cache"]  # all uploads of a process share one session
        self._remote, path = filesystem(url, own)
        self._remote.retries = 1  # tried again here, under one deadline
        bucket, key, _ = self._remote.split_path(path)
        if not key:
            raise IsADirectoryError(f"{url} names a bucket; add the name of an object")
        self._object = {"Bucket": bucket, "Key": key}
        self._buffer = bytearray()
        self._size = 0
        self._upload: str | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._running: deque[Future[dict[str, Any]]] = deque()
        self._parts: list[dict[str, Any]] = []
        self._begun = 0

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes; waits for an upload when there are too many of them.

        Raises:
            OSError: an upload failed for good.
        """
        view = memoryview(data)
        if view.nbytes == 0:
            return 0
        view = view.cast("B")
        taken = 0
        while taken < view.nbytes:
            room = part_size(self._begun, self._first_part) - len(self._buffer)
            piece = view[taken : taken + room]
            self._buffer += piece
            taken += len(piece)
            if len(piece) == room:
                self._send()
        self._size += taken
        return taken

    def prepare(self) -> None:
        """Upload what is left, and wait until everything is there, except for small objects."""
        if self._upload is None:
            return
        if self._buffer:
            self._send()
        while self._running:
            self._collect()

    def publish(self) -> None:
        """Let the object appear, replacing what was there; `prepare` comes first."""
        if self._upload is None:
            body = bytes(self._buffer)
            self._call("put_object", f"write {self._url}", len(body), Body=body)
        else:
            self._complete(self._upload)
        self._upload = None
        self._end()
        remote, key = filesystem(self._url, self._storage_options)
        remote.invalidate_cache(remote._parent(key))

    def discard(self) -> None:
        """Stop, and remove the parts; harmless after `publish`."""
        upload, self._upload = self._upload, None
        for future in self._running:
            future.cancel()
        self._end()
        if upload is not None:
            what = f"abort the upload of {self._url}"
            self._call("abort_multipart_upload", what, 0, UploadId=upload)

    def _end(self) -> None:
        self._buffer = bytearray()
        self._running.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        self._pool = None

    def _send(self) -> None:
        if self._begun == _MOST_PARTS:
            raise OSError(
                f"{self._url}: {self._size} bytes are written, and S3 takes no more than "
                f"{_MOST_PARTS} parts; write several files"
            )
        if self._upload is None:
            answer = self._call("create_multipart_upload", f"begin to write {self._url}", 0)
            self._upload = answer["UploadId"]
            self._pool = ThreadPoolExecutor(_TOGETHER, "coredata-upload")
        body, self._buffer = self._buffer, bytearray()
        while len(self._running) >= _TOGETHER:
            self._collect()
        self._begun += 1
        if self._pool is not None:
            self._running.append(
                self._pool.submit(self._upload_part, self._upload, self._begun, bytes(body))
            )

    def _upload_part(self, upload: str, number: int, body: bytes) -> dict[str, Any]:
        answer = self._call(
            "upload_part",
            f"write part {number} of {self._url}",
            len(body),
            UploadId=upload,
            PartNumber=number,
            Body=body,
        )
        checksums = {name: answer[name] for name in answer if name.startswith("Checksum")}
        checksums.pop("ChecksumType", None)
        return {"PartNumber": number, "ETag": answer["ETag"], **checksums}

    def _collect(self) -> None:
        self._parts.append(self._running.popleft().result())

    def _complete(self, upload: str) -> None:
        tries = 0

        def attempt() -> None:
            nonlocal tries
            tries += 1
            try:
                self._once(
                    "complete_multipart_upload",
                    0,
                    UploadId=upload,
                    MultipartUpload={"Parts": self._parts},
                )
            except FileNotFoundError:
                # The answer to an earlier try was lost, but not the request.
                if tries == 1 or self._once("head_object", 0)["ContentLength"] != self._size:
                    raise

        self._retried(f"complete {self._url}", attempt)

    def _call(self, method: str, what: str, size: int, **arguments: Any) -> Any:
        return self._retried(what, lambda: self._once(method, size, **arguments))

    def _retried(self, what: str, attempt: Callable[[], Any]) -> Any:
        return Retry(self._options.deadline).run(what, attempt, self._renew, lambda: None)

    def _renew(self) -> None:
        self._remote.connect(refresh=True)

    def _once(self, method: str, size: int, **arguments: Any) -> Any:
        import fsspec.asyn

        return fsspec.asyn.sync(
            self._remote.loop,
            self._remote._call_s3,
            method,
            timeout=self._options.timeout + size / _SLOWEST,
            **self._object,
            **arguments,
        )
