"""`coredata demo`: the main road on real text, from sources and prose to a resumed batch."""

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

HELP = "tokenise Python's own library, blend it, read batches, stop, and resume exactly"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "--output", metavar="DIR", help="keep all files here (default: a directory that is removed)"
    )
    parser.add_argument(
        "--seq-length", type=int, default=1024, metavar="N", help="tokens in a sample (1024)"
    )
    parser.add_argument(
        "--size", type=float, default=8, metavar="MB", help="text of each source, at most (8)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the demo; 1 if the continuation was not the same, else 0.

    Raises:
        ValueError: a flag out of range.
        FileNotFoundError: a Python without its library's sources.
    """
    if not args.size > 0:
        raise ValueError(f"--size is {args.size} MB; give more than 0, such as 8")
    if args.seq_length < 1:
        raise ValueError(f"--seq-length is {args.seq_length}; give 1 or more, such as 1024")
    if args.output is not None:
        directory = Path(args.output)
        directory.mkdir(parents=True, exist_ok=True)
        return _demo(directory, args.seq_length, int(args.size * 1e6), kept=True)
    with tempfile.TemporaryDirectory(prefix="coredata-demo-") as name:
        return _demo(Path(name), args.seq_length, int(args.size * 1e6), kept=False)


def _demo(directory: Path, sequence_length: int, size: int, *, kept: bool) -> int:
    from coredata.tools.demo_page import Page
    from coredata.tools.demo_steps import (
        make_blend,
        read_stop_and_resume,
        show_sample,
        tokenise,
    )

    begun = time.perf_counter()
    page = Page(sys.stdout)
    page.title(f"coredata demo · Python {platform.python_version()}, {os.cpu_count()} processors")
    sources = tokenise(page, directory, size)
    plan, train = make_blend(page, directory, sources, sequence_length)
    show_sample(page, train)
    same = read_stop_and_resume(page, directory, plan, train)
    page.line()
    page.line(f"   {time.perf_counter() - begun:.0f} s in all{_peak_memory()}")
    if kept:
        page.line(f"   files: {directory}")
    return 0 if same else 1


def _peak_memory() -> str:
    """The most memory that this process, or one it started, has had."""
    try:
        import resource
    except ModuleNotFoundError:  # Not on Windows.
        return ""
    unit = 1 if sys.platform == "darwin" else 1024
    here, others = (
        resource.getrusage(who).ru_maxrss * unit / 1e6
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return f", at most {here:.0f} MB here and {others:.0f} MB in each process started"
