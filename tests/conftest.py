"""Shape checks on for the whole run, and a real S3 server for the tests that ask for one."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

_CHECKED = ["coredata", "coredata_torch", "coredata_jax"]
install_import_hook(_CHECKED, "beartype.beartype")

# The same examples at every run, so that a change is what makes a test fail. To look for new ones:
# HYPOTHESIS_PROFILE=explore make test
settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# A run in the background of a shell inherits that Ctrl-C is ignored, and so would the programs that
# tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_SLOW_EXTENSION = """
import time
from numba.core import types
from numba.extending import models, overload, register_model, typeof_impl
registering = []
def init():
    registering.append(True)
    for number in range(100):
        values = type(f"Values{number}", (), {})
        typeof_impl.register(values)(lambda value, context: None)
        register_model(type(f"Type{number}", (types.Type,), {}))(models.OpaqueModel)
        overload(values)(lambda: None)
        time.sleep(0.002)
    registering.clear()
"""


@pytest.fixture
def install_slow_extension() -> Callable[[Path], None]:
    """Puts into a directory of a Python path an extension of Numba that takes long to register."""

    def install(directory: Path) -> None:
        information = directory / "slow_extension-1.0.dist-info"
        information.mkdir()
        (directory / "slow_extension.py").write_text(_SLOW_EXTENSION)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
        entry_point = "[numba_extensions]\ninit=slow_extension:init\n"
        (information / "entry_points.txt").write_text(entry_point)

    return install


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session", autouse=True)
def _copies_directory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Copies of remote files go here, in child processes too, and not to the user's cache."""
    os.environ["COREDATA_CACHE"] = str(tmp_path_factory.mktemp("copies"))


@pytest.fixture(scope="session")
def s3_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An S3 server on loopback (JuiceFS's gateway); gives the environment that clients need.

    `COREDATA_TEST_S3` names another one that is there already (`make test-ceph`).
    """
    given = os.environ.get("COREDATA_TEST_S3")
    if given:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        keys = {name: os.environ[name] for name in names}
        yield {**keys, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": given}
        return
    home: Path = tmp_path_factory.mktemp("s3")
    (home / "blobs").mkdir()
    juicefs = str(Path(sys.executable).with_name("juicefs"))
    meta = f"sqlite3://{home}/meta.db"
    subprocess.run(
        [juicefs, "format", "-q", "--storage", "file", "--bucket", f"{home}/blobs"]
        + ["--trash-days", "0", meta, "vol"],
        check=True,
        capture_output=True,
    )
    port, metrics = _free_port(), _free_port()
    secret = {"MINIO_ROOT_USER": "testkey", "MINIO_ROOT_PASSWORD": "testsecretkey"}
    server = subprocess.Popen(
        [juicefs, "--no-agent", "gateway", "--multi-buckets", "--keep-etag", "--no-banner"]
        + ["--no-usage-report", "--no-bgjob", "--backup-meta", "0", "--cache-size", "0"]
        + ["--metrics", f"127.0.0.1:{metrics}", "--log", f"{home}/gateway.log"]
        + [meta, f"127.0.0.1:{port}"],
        env={**os.environ, **secret, "HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(f"{endpoint}/minio/health/live", server)
        yield {
            "AWS_ACCESS_KEY_ID": secret["MINIO_ROOT_USER"],
            "AWS_SECRET_ACCESS_KEY": secret["MINIO_ROOT_PASSWORD"],
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
        }
    finally:
        server.terminate()
        server.wait(timeout=10)


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"the S3 server did not come up at {url} (exit code {server.poll()})")
