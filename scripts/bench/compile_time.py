"""What compiled code costs before it runs: compiling it all, and loading it from Numba's cache.

Each figure is of a new process that opens a GPT dataset, builds its indices and a blend, and reads
a batch. Beside a cold cache, a warm one. What other packages add to Numba is left out: it imports
awkward, where that is installed (the extra `fast` needs it), before it compiles or loads anything.
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

RUN = """
import importlib.metadata, json, sys, time
importlib.metadata.entry_points = lambda **_: importlib.metadata.EntryPoints()
begun = time.perf_counter()
import coredata
imported = time.perf_counter() - begun
import tempfile
import numpy as np
from numba.core import event
from coredata import GPTDataset, GPTDatasetConfig, IndexedDataset, IndexedDatasetBuilder, Split
from coredata.blending import build_blending_indices
from coredata.text import ByteTokenizer


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
        build_blending_indices([0.5, 0.3, 0.2], 100)


timer = Timer()
event.register("numba:compile", timer)
begun = time.process_time()
use()
first = time.process_time() - begun
begun = time.process_time()
use()
second = time.process_time() - begun
print(json.dumps({"import": imported, "compile": timer.seconds, "extra": first - second}))
"""


def rows(full: bool) -> list[Row]:
    runs = 5 if full else 3
    cold, warm = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(measure(cache))
            warm.append(measure(cache))
    compiled = [found["extra"] for found in cold]
    loaded = [found["extra"] for found in warm]
    ratio = statistics.median(a / b for a, b in zip(compiled, loaded, strict=True))
    imported = statistics.median(found["import"] for found in warm)
    what = f"CPU seconds of a GPT run with a blend: warm cache, cold; import {imported:.2f} s"
    return [
        Row("compile", statistics.median(loaded), statistics.median(compiled), ratio, what, 0, 0)
    ]


def measure(cache: str) -> dict[str, float]:
    """Seconds to import, to compile, and what the first use took longer than the second."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
