"""What compiled code costs before it runs: compiling it all, and loading it from the cache.

Each figure is of a new process that opens a GPT dataset, builds its indices and a blend, and reads
a batch: once with a blend of few datasets, once with one of many, for which more is compiled.
Beside a cold cache, a warm one; beside both, what Numba itself takes to begin: its time for one
kernel that adds two numbers. What other packages add to Numba is left out: it imports awkward,
where that is installed (the extra `fast` needs it), before it compiles anything.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.bench.harness import Row

ROOT = Path(__file__).parents[2]
FEW, MANY = 3, 1_000

ALONE = """
import importlib.metadata
importlib.metadata.entry_points = lambda **_: importlib.metadata.EntryPoints()
"""

RUN = """
import json, sys, time
begun = time.perf_counter()
import coredata
imported = time.perf_counter() - begun
import tempfile
import numpy as np
from numba.core import event
from coredata import GPTDataset, GPTDatasetConfig, IndexedDataset, IndexedDatasetBuilder, Split
from coredata.blending import build_blending_indices
from coredata.text import ByteTokenizer
used = time.perf_counter() - begun


class Timer(event.Listener):
    def __init__(self):
        self.seconds, self.begun = 0.0, []

    def on_start(self, event):
        self.begun.append(time.process_time())

    def on_end(self, event):
        took = time.process_time() - self.begun.pop()
        if not self.begun:
            self.seconds += took


def use():
    with tempfile.TemporaryDirectory() as directory:
        prefix = directory + "/corpus"
        with IndexedDatasetBuilder(prefix, dtype=np.uint16) as builder:
            builder.add_documents(np.arange(2000, dtype=np.uint16) % 250, np.full(100, 20))
        config = GPTDatasetConfig(
            random_seed=5, sequence_length=16, split="1", blend=([prefix], None),
            tokenizer=ByteTokenizer(), path_to_cache=directory + "/cache",
        )
        source = IndexedDataset(prefix)
        exposed = np.arange(len(source), dtype=np.int32)
        for _ in range(2):  # built, then loaded
            dataset = GPTDataset(source, prefix, exposed, None, Split.train, config)
            dataset.get_batch(np.arange(4))
        build_blending_indices(weights, 100)


weights = np.random.default_rng(1).dirichlet(np.ones(int(sys.argv[1]))).tolist()
timer = Timer()
event.register("numba:compile", timer)
begun = time.process_time()
use()
first = time.process_time() - begun
begun = time.process_time()
use()
second = time.process_time() - begun
found = {"import": imported, "used": used, "compile": timer.seconds, "extra": first - second}
print(json.dumps(found))
"""


NUMBA = """
import json, time
import numba

@numba.njit(cache=True)
def add(a, b):
    return a + b

begun = time.process_time()
add(1, 2)
print(json.dumps({"extra": time.process_time() - begun}))
"""


def rows(full: bool) -> list[Row]:
    runs = 5 if full else 3
    return [
        row(runs, FEW, f"a GPT run with a blend of {FEW} datasets"),
        *([row(runs, MANY, f"a GPT run with a blend of {MANY:,} datasets")] if full else []),
        row(runs, 0, "Numba alone, one kernel that adds two numbers"),
    ]


def row(runs: int, datasets: int, what: str) -> Row:
    """Loading beside compiling; of Numba alone where there are no datasets."""
    cold, warm = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(measure(cache, datasets))
            warm.append(measure(cache, datasets))
    compiled = [found["extra"] for found in cold]
    loaded = [found["extra"] for found in warm]
    ratio = statistics.median(a / b for a, b in zip(compiled, loaded, strict=True))
    what = f"CPU seconds, warm cache beside cold: {what}"
    if datasets:
        imported, used = (statistics.median(one[key] for one in warm) for key in ("import", "used"))
        what += f"; import {imported:.3f} s, with all it uses, Numba too, {used:.2f} s"
    return Row("compile", statistics.median(loaded), statistics.median(compiled), ratio, what, 0, 0)


def measure(cache: str, datasets: int = FEW) -> dict[str, float]:
    """Seconds to import, to compile, and what the first use took longer than the second."""
    program = Path(cache) / "program.py"  # Numba caches what is in a file, as long as it is kept
    if not program.exists():
        program.write_text(ALONE + (RUN if datasets else NUMBA))
    done = subprocess.run(
        [sys.executable, program, str(datasets)],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
