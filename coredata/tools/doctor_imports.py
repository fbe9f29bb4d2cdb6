"""Whether installed packages can be imported, tried in processes of their own."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping

_MODULES = {"multi-storage-client": "multistorageclient", "pyarrow": "pyarrow.parquet"}
"""Package -> what is imported of it, where that is not its name."""

_LONGEST = 120.0
"""Seconds."""

_PROGRAM = """
import importlib, json, sys
path, module = json.loads(sys.argv[1])
sys.path[:] = path
importlib.import_module(module)
"""


def import_failures(packages: Iterable[str], longest: float = _LONGEST) -> Mapping[str, str]:
    """What went wrong, for each of the packages that cannot be imported.

    All are tried at once, each in a process of its own: a broken one may end it.
    """
    until = time.monotonic() + longest
    started: dict[str, subprocess.Popen[str]] = {}
    try:
        for package in dict.fromkeys(packages):
            started[package] = _started(package)
        told = {package: _outcome(process, until) for package, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
            process.wait()
    return {package: failure for package, failure in told.items() if failure}


def _started(package: str) -> "subprocess.Popen[str]":
    asked = json.dumps([sys.path, _MODULES.get(package, package)])
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, asked],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )


def _outcome(process: "subprocess.Popen[str]", until: float) -> str:
    try:
        _, errors = process.communicate(timeout=max(until - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it takes too long, and was given up"
    if process.returncode == 0:
        return ""
    if process.returncode < 0:
        return f"it ends the process by {signal.Signals(-process.returncode).name}"
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1] if lines else f"the process ends with code {process.returncode}"
