"""How cost grows: measures it, and draws the curves of docs/growth.md.

`python -m scripts.bench.growth` writes `docs/growth/*.svg` and `docs/growth/measured.json`. Times
are processor seconds of one process (the least of three), so that a busy machine does not bend the
curves; the calls are those that `strace` counts.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coredata import (
    BlendedMegatronDatasetBuilder,
    GPTDataset,
    GPTDatasetConfig,
    IndexedDataset,
    Split,
)
from coredata.blending import build_blending_indices
from coredata.indices import build_gpt_indices, plan_epochs
from scripts.bench import start
from scripts.bench.get_batch import write_corpus

DOCS = Path(__file__).parents[2] / "docs"
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Curve:
    """One plot: what grows (x), what it costs (y), a line for each name."""

    name: str
    title: str
    x: str
    y: str
    lines: dict[str, Points]


def main() -> None:
    warnings.filterwarnings("ignore")
    if len(sys.argv) > 1:
        _one_rank(*sys.argv[1:])
        return
    with tempfile.TemporaryDirectory() as name:
        curves = [
            documents(),
            epochs(),
            datasets(),
            sequence_length(Path(name)),
            prefixes_and_ranks(Path(name)),
        ]
    (DOCS / "growth").mkdir(parents=True, exist_ok=True)
    for curve in curves:
        (DOCS / "growth" / f"{curve.name}.svg").write_text(drawn(curve), encoding="utf-8")
    measured = {curve.name: curve.lines for curve in curves}
    text = json.dumps(measured, indent=1)
    (DOCS / "growth" / "measured.json").write_text(text + "\n", encoding="utf-8")
    print(text)


def seconds(function: Callable[[], Any]) -> float:
    times = []
    for _ in range(3):
        begun = time.process_time()
        function()
        times.append(time.process_time() - begun)
    return min(times)


def _indices(lengths: np.ndarray, epochs: float) -> tuple[float, int]:
    """Seconds to build the three arrays of a dataset, and their bytes."""
    exposed = np.arange(lengths.size, dtype=np.int32)
    samples = int(epochs * int(lengths.sum(dtype=np.int64))) // 4096
    arrays = build_gpt_indices(lengths, exposed, samples, 4096, 1)
    size = sum(
        array.nbytes for array in (arrays.document_index, arrays.sample_index, arrays.shuffle_index)
    )
    return seconds(lambda: build_gpt_indices(lengths, exposed, samples, 4096, 1)), size


def documents() -> Curve:
    rng = np.random.default_rng(1)
    lines: dict[str, Points] = {"seconds": [], "MB of indices": []}
    for count in (10_000, 100_000, 1_000_000, 10_000_000):
        spent, size = _indices(rng.integers(1, 2000, count, dtype=np.int32), 1.0)
        lines["seconds"].append((count, spent))
        lines["MB of indices"].append((count, size / 1e6))
    return Curve("documents", "GPT indices, one epoch, S 4096", "documents", "s, MB", lines)


def epochs() -> Curve:
    lengths = np.random.default_rng(1).integers(1, 2000, 100_000, dtype=np.int32)
    lines: dict[str, Points] = {"seconds": [], "MB of indices": []}
    for count in (1, 3, 10, 30, 100):
        spent, size = _indices(lengths, count)
        lines["seconds"].append((count, spent))
        lines["MB of indices"].append((count, size / 1e6))
    return Curve("epochs", "GPT indices, 100,000 documents, S 4096", "epochs", "s, MB", lines)


def datasets() -> Curve:
    samples = 1_000_000
    line: Points = []
    for count in (10, 100, 1000, 10_000):
        weights = np.random.default_rng(2).dirichlet(np.ones(count)).tolist()
        build_blending_indices(weights, 1000)
        spent = seconds(lambda weights=weights: build_blending_indices(weights, samples))
        line.append((count, spent / samples * 1e9))
    return Curve("datasets", "Blending index", "datasets", "nanoseconds a sample", {"blend": line})


def sequence_length(directory: Path) -> Curve:
    prefix = directory / "corpus"
    write_corpus(prefix, 20_000_000)
    source = IndexedDataset(str(prefix))
    exposed = np.arange(len(source), dtype=np.int32)
    lines: dict[str, Points] = {"get_batch": [], "build": []}
    for size in (512, 1024, 2048, 4096, 8192):
        config = GPTDatasetConfig(**_settings([str(prefix)], None, size))
        dataset = GPTDataset(source, str(prefix), exposed, None, Split.train, config)
        batch = 65_536 // size
        batches = np.arange(len(dataset) // batch * batch).reshape(-1, batch)

        def read(dataset: GPTDataset = dataset, batches: np.ndarray = batches) -> None:
            for numbers in batches:
                dataset.get_batch(numbers)

        read()
        lines["get_batch"].append((size, seconds(read) / (batches.size * size) * 1e9))
        plan = plan_epochs(int(source.sequence_lengths.sum()), None, size)
        lengths = np.array(source.sequence_lengths)

        def build(size: int = size, lengths: np.ndarray = lengths) -> None:
            build_gpt_indices(lengths, exposed, None, size, 1)

        build()
        lines["build"].append((size, seconds(build) / (plan.samples * size) * 1e9))
    return Curve("sequence_length", "One token", "sequence length S", "nanoseconds a token", lines)


def prefixes_and_ranks(directory: Path) -> Curve:
    """System calls on files of one rank of many, which starts with a warm cache."""
    lines: dict[str, Points] = {}
    for prefixes in (1, 10, 100):
        place = directory / f"prefixes-{prefixes}"
        place.mkdir()
        start.write(place, prefixes, documents=50)
        start.builder("coredata", place)()
        for mode in ("checked", "trusted"):
            line = lines.setdefault(f"{prefixes} prefixes, {mode}", [])
            for ranks in (1, 10, 100, 1000):
                line.append((ranks, _calls(place, mode, ranks)))
    return Curve("ranks", "System calls on files, of one rank", "ranks", "calls of a rank", lines)


def _calls(directory: Path, mode: str, ranks: int) -> int:
    trace = directory / "trace"
    command = [sys.executable, "-m", "scripts.bench.growth", str(directory), mode, str(ranks)]
    strace = ["strace", "-f", "-qq", "-e", "trace=%file,%desc", "-o", str(trace)]
    subprocess.run([*strace, *command], check=True)
    return start.between_marks(trace)


def _one_rank(directory: str, mode: str, ranks: str) -> None:
    """Build as the last of many ranks; the others are only made believe."""
    settings = start.settings("coredata", Path(directory))
    if mode == "trusted":
        settings.update(fast_cache_load=True, defer_npy_index_mmap=True)
    config = GPTDatasetConfig(**settings)
    others = _OneOfMany(int(ranks) - 1, int(ranks))

    def build() -> None:
        BlendedMegatronDatasetBuilder(GPTDataset, start.SIZES, config=config, ranks=others).build()

    build()
    os.path.exists(start.BEGIN)
    build()
    os.path.exists(start.END)


@dataclass(frozen=True)
class _OneOfMany:
    """Ranks that all say what this one says."""

    rank: int
    world_size: int
    node_rank: int = 0
    builds: bool = True

    def all_gather(self, value: Any) -> list[Any]:
        return [value] * self.world_size


def _settings(prefixes: Sequence[str], cache: str | None, size: int) -> dict[str, Any]:
    from coredata.text import ByteTokenizer

    return {
        "random_seed": 5,
        "sequence_length": size,
        "split": "1",
        "blend": (list(prefixes), None),
        "tokenizer": ByteTokenizer(),
        "path_to_cache": cache,
        "create_attention_mask": False,
        "reset_position_ids": False,
        "reset_attention_mask": False,
        "eod_mask_loss": False,
    }


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 70, 170, 40, 50
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df", "#9a6700", "#57606a")


def drawn(curve: Curve) -> str:
    """The plot as an SVG, both axes logarithmic."""
    points = [point for line in curve.lines.values() for point in line]
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{curve.title}</text>',
    ]
    for power in range(x_low, x_high + 1):
        x, bottom = place(10**power, 10**y_low)
        _, top = place(10**power, 10**y_high)
        parts.append(_segment(x, bottom, x, top))
        parts.append(_label(x, bottom + 16, "middle", _number(power)))
    for power in range(y_low, y_high + 1):
        left, y = place(10**x_low, 10**power)
        right, _ = place(10**x_high, 10**power)
        parts.append(_segment(left, y, right, y))
        parts.append(_label(left - 6, y + 4, "end", _number(power)))
    parts.append(_label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "middle", curve.x))
    parts.append(_label(LEFT, TOP - 6, "middle", curve.y))
    for number, (name, line) in enumerate(curve.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        placed = [place(x, y) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        y = TOP + 18 * number + 10
        parts.append(
            f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
        )
        parts.append(_label(WIDTH - RIGHT + 28, y, "start", name))
    return "\n".join([*parts, "</svg>", ""])


def _decades(values: list[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(math.ceil(math.log10(max(values))), low + 1)


def _number(power: int) -> str:
    return (
        f"{10**power:,}" if 0 <= power <= 4 else f"{10.0**power:g}" if power < 0 else f"1e{power}"
    )


def _segment(x1: float, y1: float, x2: float, y2: float) -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="#d0d7de" stroke-width="1"/>'


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#24292f">{text}</text>'


if __name__ == "__main__":
    main()
