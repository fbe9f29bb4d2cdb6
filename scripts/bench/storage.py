"""Reading a shuffled GPT dataset from a real S3 server, 50 ms away, beside local files.

Each side runs in a process of its own. What is claimed is printed beside what was measured.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coredata import IndexedDatasetBuilder
from coredata.testing.fault_proxy import FaultProxy, delay
from coredata.text import ByteTokenizer
from scripts.bench.s3_server import BUCKET, slow_s3

LATENCY = 0.05
STEP = 0.25
BLOCKS = 16
"""The other reader's block is this part of the data: as 256 MiB are of 4 GiB."""


@dataclass(frozen=True)
class Claim:
    """A line of the table.

    Attributes:
        what: what is claimed.
        measured: what was measured.
        limit: what it is held to.
        holds: whether it holds.
        remark: setting and details.
    """

    what: str
    measured: str
    limit: str
    holds: bool
    remark: str


@dataclass(frozen=True)
class Sizes:
    """How large everything is.

    Attributes:
        data: bytes of the token file, and of many files together.
        memory: the budget, in bytes; less than is read without training between.
        warm: batches before those that are timed.
        paced_steps: batches with training between.
        free_steps: batches without; a quarter for each of four processes.
        slow_steps: batches of the other reader.
        many: files that four processes read.
        start: files that a run starts with.
    """

    data: int
    memory: int
    warm: int
    paced_steps: int
    free_steps: int
    slow_steps: int
    many: int
    start: int


FULL = Sizes(512 << 20, 16 << 20, 10, 50, 300, 4, 50, 200)
SMALL = Sizes(50 << 20, 4 << 20, 4, 20, 80, 2, 50, 200)


def write(prefix: str, tokens: int, seed: int, options: dict[str, Any] | None = None) -> None:
    """Documents of 16 to 2000 two-byte tokens."""
    rng = np.random.default_rng(seed)
    with IndexedDatasetBuilder(prefix, np.uint16, storage_options=options) as builder:
        written = 0
        while written < tokens:
            lengths = rng.integers(16, 2000, max(min(1000, (tokens - written) // 1000), 1))
            flat = rng.integers(0, 256, int(lengths.sum()), dtype=np.uint16)
            flat[np.cumsum(lengths) - 1] = ByteTokenizer().eod
            builder.add_documents(flat, lengths)
            written += flat.size


def upload(locals_: Sequence[str], urls: Sequence[str], direct: dict[str, Any]) -> None:
    """Copy token files to the server, many at the same time."""
    import fsspec

    remote = fsspec.filesystem("s3", **direct)
    for suffix in (".bin", ".idx"):
        remote.put([name + suffix for name in locals_], [url + suffix for url in urls])


def reader(prefixes: Sequence[str], options: dict[str, Any] | None, **task: Any) -> Any:
    """A process that reads; its result is awaited by `result`."""
    defaults = {"block": 0, "rank": 0, "ranks": 1, "ahead": 24, "step": STEP, "warm": 0}
    whole = {**defaults, "prefixes": list(prefixes), "options": options, **task}
    command = [sys.executable, "-W", "ignore", "-m", "scripts.bench.storage_reader"]
    return subprocess.Popen([*command, json.dumps(whole)], stdout=subprocess.PIPE, text=True)


def result(process: Any) -> dict[str, Any]:
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"a reader ended with exit code {process.returncode}")
    return json.loads(output)


def rows(full: bool) -> list[Claim]:
    """All claims, measured."""
    sizes = FULL if full else SMALL
    with tempfile.TemporaryDirectory(prefix="coredata-bench-") as name, slow_s3() as served:
        proxy, options, direct = served
        directory = Path(name)
        options = {**options, "coredata": {"copies": str(directory / "copies")}}
        return [
            *one_file(directory, proxy, options, direct, sizes),
            many_files(directory, proxy, options, direct, sizes),
            *start(directory, proxy, options, direct, sizes),
        ]


def one_file(
    directory: Path, proxy: FaultProxy, options: Any, direct: Any, sizes: Sizes
) -> list[Claim]:
    """Waste, speed and memory with one file."""
    local, url = str(directory / "corpus"), f"s3://{BUCKET}/corpus"
    write(local, sizes.data // 2, 1)
    upload([local], [url], direct)
    proxy.set(delay(LATENCY))
    own = {**options, "coredata": {**options["coredata"], "memory": sizes.memory}}
    paced = {"steps": sizes.paced_steps, "warm": sizes.warm}
    ours, near = [], []
    for _ in range(2):  # in turn
        near.append(result(reader([local], None, **paced)))
        ours.append(result(reader([url], own, **paced)))
    same = {run["digest"] for run in (*near, *ours)}
    if len(same) != 1:
        raise RuntimeError("batches from S3 differ from those of the local file")
    block = sizes.data // BLOCKS
    free = {"step": 0.0, "steps": sizes.slow_steps, "warm": 0}
    slow = result(reader([url], direct | {"endpoint_url": proxy.url}, block=block, **free))
    free = {"step": 0.0, "steps": sizes.free_steps, "warm": sizes.warm}
    fast = result(reader([url], own, **free))
    proxy.set()
    share = max(speed(run) for run in ours) / max(speed(run) for run in near)
    factor = speed(fast) / speed(slow)
    counters = ours[-1]["counters"]
    waste = max(wasted(run["counters"]) for run in (ours[-1], fast))
    extra = max(run["memory"] for run in (*ours, fast))
    mib = sizes.data >> 20
    setting = f"{mib} MiB, B 8 x S 4096, {LATENCY * 1000:.0f} ms a request"
    return [
        Claim("bytes fetched / used", f"{waste:.3f}", "<= 1.3", waste <= 1.3, f"{setting}, cold"),
        Claim(
            "tokens/s, share of local",
            f"{share:.3f}",
            ">= 0.8",
            share >= 0.8,
            f"{setting}, steps of {STEP} s; {counters['waits']} of "
            f"{counters['waits'] + counters['hits']} ranges waited for",
        ),
        Claim(
            "tokens/s / one block a file",
            f"{factor:.1f}",
            ">= 20",
            factor >= 20,
            f"{speed(fast):,.0f} and {speed(slow):,.0f} tokens/s, blocks of {block >> 10} KiB, "
            "no training between",
        ),
        Claim(
            "peak memory",
            f"{extra / 1e6:.0f} MB",
            f"<= {(sizes.memory + 100e6) / 1e6:.0f} MB",
            extra <= sizes.memory + 100e6,
            f"above an open dataset; budget {sizes.memory / 1e6:.1f} MB, "
            f"{read_through([fast], sizes)}",
        ),
    ]


def many_files(
    directory: Path, proxy: FaultProxy, options: Any, direct: Any, sizes: Sizes
) -> Claim:
    """Four processes that share one budget over many files."""
    names = [f"part{number}" for number in range(sizes.many)]
    urls = [f"s3://{BUCKET}/{name}" for name in names]
    for number, name in enumerate(names):
        write(str(directory / name), sizes.data // 2 // sizes.many, 100 + number)
    upload([str(directory / name) for name in names], urls, direct)
    proxy.set(delay(LATENCY))
    shared = {**options["coredata"], "memory": sizes.memory, "processes": 4}
    task = {"steps": sizes.free_steps // 4, "warm": 0, "ranks": 4, "step": 0.0}
    running = [
        reader(urls, {**options, "coredata": shared}, rank=rank, **task) for rank in range(4)
    ]
    found = [result(process) for process in running]
    proxy.set()
    total = sum(run["memory"] for run in found)
    return Claim(
        f"peak memory, {sizes.many} files x 4 processes",
        f"{total / 1e6:.0f} MB",
        f"<= {(sizes.memory + 100e6) / 1e6:.0f} MB",
        total <= sizes.memory + 100e6,
        "above open datasets, all processes together; budget "
        f"{sizes.memory / 1e6:.1f} MB, {read_through(found, sizes)}",
    )


def read_through(runs: Sequence[dict[str, Any]], sizes: Sizes) -> str:
    """How much was read through a budget, which is to have been full.

    Raises:
        RuntimeError: it never was, so that its limit was not tried.
    """
    fetched = sum(run["counters"]["bytes_fetched"] for run in runs)
    held = sum(run["counters"]["held"] for run in runs)
    if not all(run["counters"]["evicted"] for run in runs) or held > sizes.memory:
        raise RuntimeError(f"{fetched} bytes came, {held} are held of {sizes.memory}")
    return f"{fetched / 1e6:.0f} MB fetched, {held / 1e6:.1f} MB held at the end"


def start(
    directory: Path, proxy: FaultProxy, options: Any, direct: Any, sizes: Sizes
) -> list[Claim]:
    """The time until the datasets of many prefixes are there."""
    names = [str(directory / f"start{number}") for number in range(sizes.start)]
    urls = [f"s3://{BUCKET}/start/{number:04d}" for number in range(sizes.start)]
    for number, name in enumerate(names):
        write(name, 10_000, number)
    upload(names, urls, direct)
    own = {"copies": str(directory / "start-copies"), "requests": 64}
    task = {"prefixes": urls, "options": {**options, "coredata": own}}
    task["cache"] = str(directory / "start-cache")
    proxy.set(delay(LATENCY))
    claims = []
    for state, limit in (("cold", 5.0), ("warm", 1.0)):
        proxy.clear()
        command = [sys.executable, "-W", "ignore", "-m", "scripts.bench.storage_start"]
        output = subprocess.run(
            [*command, json.dumps(task)], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        seconds, requests = float(output), len(proxy.counters().requests)
        claims.append(
            Claim(
                f"start, {sizes.start} files, {state}",
                f"{seconds:.2f} s",
                f"<= {limit:.0f} s",
                seconds <= limit,
                "imports and loading of kernels not included; "
                f"{requests} requests, {LATENCY * 1000:.0f} ms each",
            )
        )
    proxy.set()
    return claims


def wasted(counters: dict[str, int]) -> float:
    return counters["bytes_fetched"] / counters["bytes_used"]


def speed(run: dict[str, Any]) -> float:
    return run["tokens"] / run["seconds"] if run["seconds"] else math.inf


def table(claims: Sequence[Claim]) -> str:
    """The claims as a Markdown table."""
    lines = [["claim", "measured", "limit", "holds", "setting"]]
    lines += [[c.what, c.measured, c.limit, "yes" if c.holds else "NO", c.remark] for c in claims]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the sizes of the README's numbers")
    full = parser.parse_args().full
    begun = time.perf_counter()
    claims = rows(full)
    print(table(claims))
    print(f"{time.perf_counter() - begun:.0f} s")
    sys.exit(0 if all(claim.holds for claim in claims) else 1)


if __name__ == "__main__":
    main()
