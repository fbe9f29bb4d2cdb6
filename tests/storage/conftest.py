"""Storage behind a proxy that makes things go wrong: an S3 bucket, and files over plain HTTP."""

import contextlib
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest

from coredata.storage import service
from coredata.testing.fault_proxy import FaultProxy


@dataclass(frozen=True)
class Bucket:
    """A bucket of its own for one test.

    Attributes:
        url: `s3://NAME`.
        options: storage options that go through the proxy.
        direct: storage options that go straight to the server.
        name: of the bucket.
    """

    url: str
    options: dict[str, Any]
    direct: dict[str, Any]
    name: str

    def put(self, key: str, content: bytes) -> str:
        """Store an object, past the proxy; gives its URL."""
        fsspec.filesystem("s3", **self.direct).pipe_file(f"{self.name}/{key}", content)
        return f"{self.url}/{key}"

    def get(self, key: str) -> bytes:
        """The bytes of an object, past the proxy."""
        return fsspec.filesystem("s3", **self.direct).cat_file(f"{self.name}/{key}")

    def names(self) -> list[str]:
        """All keys in the bucket, past the proxy."""
        fs = fsspec.filesystem("s3", **self.direct)
        fs.invalidate_cache()
        return sorted(path.removeprefix(f"{self.name}/") for path in fs.find(self.name))


@pytest.fixture(autouse=True)
def _services_end() -> Iterator[None]:
    """Each test has caches and counters of its own, and leaves no threads."""
    yield
    services = list(service._SERVICES.values())
    service._SERVICES.clear()
    for one in services:
        one._now.shutdown(wait=False, cancel_futures=True)
        one._later.shutdown(wait=False, cancel_futures=True)


@pytest.fixture(scope="session")
def s3_proxy(s3_environment: dict[str, str]) -> Iterator[FaultProxy]:
    with FaultProxy(s3_environment["AWS_ENDPOINT_URL"]) as proxy:
        yield proxy


@pytest.fixture
def proxy(s3_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The proxy before the S3 server, without faults, its counters at zero."""
    s3_proxy.set()
    s3_proxy.clear()
    yield s3_proxy
    s3_proxy.set()


@pytest.fixture
def bucket(s3_environment: dict[str, str], proxy: FaultProxy) -> Bucket:
    """A new, empty bucket. Clients do not retry by themselves, so that every fault is seen."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    direct = {
        "key": s3_environment["AWS_ACCESS_KEY_ID"],
        "secret": s3_environment["AWS_SECRET_ACCESS_KEY"],
        "endpoint_url": s3_environment["AWS_ENDPOINT_URL"],
        "client_kwargs": {"region_name": s3_environment["AWS_DEFAULT_REGION"]},
        "config_kwargs": {"retries": {"max_attempts": 0}},
    }
    with contextlib.suppress(FileExistsError):  # where the answer came too late for the client
        fsspec.filesystem("s3", **direct).call_s3("create_bucket", Bucket=name)
    return Bucket(f"s3://{name}", {**direct, "endpoint_url": proxy.url}, direct, name)


class _Files(SimpleHTTPRequestHandler):
    """Files of a directory, with ranges and ETags, over connections that stay open."""

    protocol_version = "HTTP/1.1"
    tells_versions = True

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        content, status = path.read_bytes(), 200
        size, (first, _, last) = len(content), self.headers.get("Range", "")[6:].partition("-")
        if first:
            stop = min(int(last or size - 1) + 1, size)
            content, status = content[int(first) : stop], 206
        self.send_response(status)
        if status == 206:
            self.send_header(
                "Content-Range", f"bytes {first}-{int(first) + len(content) - 1}/{size}"
            )
        if self.tells_versions:
            stat = path.stat()
            self.send_header("ETag", f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True)
class WebFiles:
    """A directory that is served over HTTP: `root / "x"` is at `url + "/x"`."""

    root: Path
    url: str
    proxy: FaultProxy


class _FilesWithoutVersions(_Files):
    """The same, without ETags."""

    tells_versions = False


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebFiles]:
    """A plain HTTP server behind a proxy of its own."""
    with _served(tmp_path, _Files) as files:
        yield files


@pytest.fixture
def web_without_versions(tmp_path: Path) -> Iterator[WebFiles]:
    """A plain HTTP server that tells neither ETag nor time of change."""
    with _served(tmp_path, _FilesWithoutVersions) as files:
        yield files


@contextlib.contextmanager
def _served(tmp_path: Path, handler: type[_Files]) -> Iterator[WebFiles]:
    root = tmp_path / "web"
    root.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(root)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        with FaultProxy(f"http://127.0.0.1:{server.server_port}") as proxy:
            yield WebFiles(root, proxy.url, proxy)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
