"""`python -m scripts.bench [--full] [--only NAME …]`: every benchmark, as one table.

Each stage is a module of this package with `rows(full)`, and runs in a process of its own, one
after the other. The table goes to the terminal and to `build/bench.md`.
"""

import argparse
import dataclasses
import importlib
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scripts.bench.harness import Row, table

STAGES = (
    "index_build",
    "blend",
    "get_batch",
    "first_touch",
    "masked",
    "preprocess",
    "start",
    "grain",
    "fim",
    "packers",
    "compile_time",
    "verify",
    "adapters",
    "storage",
)
OTHERS = ("numpy", "numba", "torch", "megatron-core", "tokenizers", "gigatoken", "grain")
REPORT = Path("build/bench.md")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the sizes of the README's numbers")
    parser.add_argument(
        "--only", nargs="+", choices=STAGES, metavar="NAME", help=f"of {', '.join(STAGES)}"
    )
    parser.add_argument("--to", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.to is not None:
        measure(args.only[0], args.full, args.to)
        return 0
    stages = [stage for stage in STAGES if stage in (args.only or STAGES)]
    found: list[Any] = []
    failed = []
    for stage in stages:
        begun = time.monotonic()
        rows = in_a_process(stage, args.full)
        seconds = time.monotonic() - begun
        said = "failed" if rows is None else f"{len(rows)} rows"
        print(f"{stage}: {said} in {seconds:.0f} s", file=sys.stderr, flush=True)
        found += rows or []
        failed += [stage] if rows is None else []
    text = page(found, args.full)
    print(text)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text + "\n", encoding="utf-8")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


def measure(stage: str, full: bool, to: Path) -> None:
    """Run one stage here, and leave its rows in a file."""
    warnings.filterwarnings("ignore")  # the reference's, at import
    rows = importlib.import_module(f"scripts.bench.{stage}").rows(full)
    to.write_bytes(pickle.dumps(rows))


def in_a_process(stage: str, full: bool) -> list[Any] | None:
    """The rows of a stage; None if it failed."""
    with tempfile.TemporaryDirectory() as directory:
        to = Path(directory) / "rows"
        command = [sys.executable, "-m", "scripts.bench", "--only", stage, "--to", str(to)]
        process = subprocess.run([*command, *(["--full"] if full else [])], check=False)
        # Written by this very program, a moment ago.
        return None if process.returncode else pickle.loads(to.read_bytes())


def page(found: Sequence[Any], full: bool) -> str:
    """The tables: ratios first, then what is of another shape, a table for each kind."""
    size = "full sizes" if full else "small sizes; the README's numbers are those of --full"
    lines = [f"{machine()}.", f"Medians of 5 alternating runs, {size}.", ""]
    ratios = [row for row in found if isinstance(row, Row)]
    if ratios:
        lines.append(table(ratios))
    kinds = list(dict.fromkeys(type(row) for row in found if not isinstance(row, Row)))
    for kind in kinds:
        names = [field.name for field in dataclasses.fields(kind)]
        lines += ["", "| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
        for row in found:
            if type(row) is kind:
                cells = [str(getattr(row, name)) for name in names]
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> str:
    """What it ran on."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0))
    packages = ", ".join(f"{name} {version(name)}" for name in OTHERS)
    return f"{model}, {cores} cores, Python {platform.python_version()}; {packages}"


if __name__ == "__main__":
    sys.exit(main())
