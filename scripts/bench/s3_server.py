"""A real S3 server on loopback (JuiceFS's gateway), with latency in front of it."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from coredata.testing.fault_proxy import FaultProxy

SECRET = {"MINIO_ROOT_USER": "benchkey", "MINIO_ROOT_PASSWORD": "benchsecretkey"}
BUCKET = "bench"


@contextlib.contextmanager
def slow_s3() -> Iterator[tuple[FaultProxy, dict[str, Any], dict[str, Any]]]:
    """A proxy before a new server; storage options through the proxy, and past it."""
    import fsspec

    with tempfile.TemporaryDirectory(prefix="coredata-bench-s3-") as home, _gateway(home) as direct:
        fsspec.filesystem("s3", **direct).mkdir(BUCKET)
        with FaultProxy(direct["endpoint_url"]) as proxy:
            yield proxy, {**direct, "endpoint_url": proxy.url}, direct


@contextlib.contextmanager
def _gateway(home: str) -> Iterator[dict[str, Any]]:
    (Path(home) / "blobs").mkdir()
    juicefs = str(Path(sys.executable).with_name("juicefs"))
    meta = f"sqlite3://{home}/meta.db"
    subprocess.run(
        [juicefs, "format", "-q", "--storage", "file", "--bucket", f"{home}/blobs"]
        + ["--trash-days", "0", meta, "vol"],
        check=True,
        capture_output=True,
    )
    port, metrics = _free_port(), _free_port()
    server = subprocess.Popen(
        [juicefs, "--no-agent", "gateway", "--multi-buckets", "--keep-etag", "--no-banner"]
        + ["--no-usage-report", "--no-bgjob", "--backup-meta", "0", "--cache-size", "0"]
        + ["--metrics", f"127.0.0.1:{metrics}", "--log", f"{home}/gateway.log"]
        + [meta, f"127.0.0.1:{port}"],
        env={**os.environ, **SECRET, "HOME": home},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://127.0.0.1:{port}/minio/health/live", server)
        yield {
            "key": SECRET["MINIO_ROOT_USER"],
            "secret": SECRET["MINIO_ROOT_PASSWORD"],
            "endpoint_url": f"http://127.0.0.1:{port}",
            "client_kwargs": {"region_name": "us-east-1"},
        }
    finally:
        server.terminate()
        server.wait(timeout=10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"the S3 server did not come up at {url} (exit code {server.poll()})")
