"""The adapters beside the numpy loader, and how long the small trainers wait for data.

`rows` runs each framework in a process of its own: `python -m scripts.bench.adapters SIDE`.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from coredata import BatchLoader, GPTDataset, GPTDatasetConfig, IndexedDataset, Split
from coredata.sampling import GlobalBatchSampler, MegatronPretrainingSampler
from coredata.testing import assert_same_batch
from coredata.text import ByteTokenizer
from scripts.bench.get_batch import write_corpus
from scripts.bench.harness import Row, compare

ROOT = Path(__file__).parents[2]
DEVICES = 8
SIDES = ("torch", "jax")


def rows(full: bool) -> list[Row]:
    found = []
    for side in SIDES:
        paths = [ROOT, ROOT / "adapters" / "torch", ROOT / "adapters" / "jax"]
        done = subprocess.run(
            [sys.executable, "-m", __name__, side, *(["--full"] if full else [])],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, paths)),
                "JAX_PLATFORMS": "cpu",
                "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
            },
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found += [Row(**row) for row in json.loads(done.stdout.splitlines()[-1])]
    return found


def open_dataset(directory: Path, sequence_length: int, integers: str) -> GPTDataset:
    config = GPTDatasetConfig(
        random_seed=5,
        sequence_length=sequence_length,
        split="1",
        blend=([str(directory / "corpus")], None),
        tokenizer=ByteTokenizer(),
        path_to_cache=str(directory / "cache"),
        segment_ids=True,
        output_dtype=integers,
    )
    source = IndexedDataset(str(directory / "corpus"))
    documents = np.arange(len(source), dtype=np.int32)
    prefix = str(directory / "corpus")
    return GPTDataset(source, prefix, documents, None, Split.train, config)


def beside_numpy(
    name: str,
    dataset: GPTDataset,
    batch: int,
    steps: int,
    adapter: Callable[[], Any],
    ready: Callable[[Any], Any],
) -> Row:
    """All of an adapter's batches and all of the numpy loader's, each read and dropped."""

    def numpy_loader() -> BatchLoader:
        return BatchLoader(dataset, GlobalBatchSampler(steps * batch, 0, batch))

    def run(make: Callable[[], Any], use: Callable[[Any], Any]) -> None:
        with make() as batches:
            count = sum(use(b) is not None for b in islice(batches, steps))
        if count != steps:
            raise RuntimeError(f"{name} gave {count} batches, expected {steps}")

    with adapter() as ours, numpy_loader() as other:
        for step, (a, b) in enumerate(zip(islice(ours, steps), other, strict=True)):
            assert_same_batch({k: np.asarray(v) for k, v in a.items()}, b, f"{name}, {step}")

    def same(_a: None, _b: None) -> None:
        """Compared above, batch by batch: the timed runs drop each batch, as a trainer does."""

    row = compare(
        f"{name} loader",
        lambda: run(adapter, ready),
        lambda: run(numpy_loader, lambda b: b),
        same,
        "",
    )
    tokens = steps * batch * dataset.config.sequence_length / 1e6
    return replace(
        row,
        what=f"{tokens / row.ours:,.0f} beside {tokens / row.other:,.0f} million tokens/s; "
        f"{steps} batches of {batch} x {dataset.config.sequence_length}",
    )


def waiting(name: str, batches: Iterator[Any], step: Callable[[Any], None], steps: int) -> Row:
    """How long each step of a trainer waits for its batch, beside the whole of it."""
    waits, whole = [], []
    step(next(batches))
    for _ in range(steps):
        begun = time.perf_counter()
        batch = next(batches)
        waits.append(time.perf_counter() - begun)
        step(batch)
        whole.append(time.perf_counter() - begun)
    wait, length = statistics.median(waits), statistics.median(whole)
    what = f"wait beside step of the small trainer: {sum(waits) / sum(whole):.2%} of {steps} steps"
    return Row(f"{name} trainer", wait, length, length / wait, what, 0, 0)


def torch_rows(directory: Path, full: bool) -> list[Row]:
    import torch
    from coredata_torch import PretrainingDataLoader

    from scripts.train_torch import Model, loss_sums

    dataset, batch, steps = open_dataset(directory, 4096, "int64"), 8, 300 if full else 60

    def loader() -> PretrainingDataLoader:
        sampler = MegatronPretrainingSampler(steps * batch, 0, batch, 0, 1)
        return PretrainingDataLoader(dataset, sampler)

    found = [beside_numpy("torch", dataset, batch, steps, loader, lambda b: b["tokens"].shape)]
    small = open_dataset(directory, 128, "int64")
    model = Model(ByteTokenizer().vocab_size, 128)
    optimizer = torch.optim.AdamW(model.parameters())

    def step(read: dict[str, torch.Tensor]) -> None:
        optimizer.zero_grad()
        loss, count = loss_sums(model, read)
        (loss / count).backward()
        optimizer.step()

    sampler = MegatronPretrainingSampler(len(small), 0, 16, 0, 1)
    with PretrainingDataLoader(small, sampler) as batches:
        return [*found, waiting("torch", batches, step, 100 if full else 20)]


def jax_rows(directory: Path, full: bool) -> list[Row]:
    import jax
    from coredata_jax import ShardedBatches
    from jax.sharding import Mesh

    from scripts.train_jax import first_state, train_step

    dataset, batch, steps = open_dataset(directory, 4096, "int32"), 8, 300 if full else 60

    def loader(devices: int) -> Callable[[], ShardedBatches]:
        mesh = Mesh(np.array(jax.devices()[:devices]), ("data",))
        return lambda: ShardedBatches(dataset, batch, mesh)

    found = [
        beside_numpy(f"jax on {n}", dataset, batch, steps, loader(n), jax.block_until_ready)
        for n in (1, DEVICES)
    ]
    small = open_dataset(directory, 128, "int32")
    state = jax.jit(first_state, static_argnums=(0, 1))(ByteTokenizer().vocab_size, 128)
    take_step = jax.jit(train_step, donate_argnums=0)
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))

    def step(read: dict[str, jax.Array]) -> None:
        nonlocal state
        state, loss, _ = take_step(state, read, 1e-3)
        loss.block_until_ready()

    with ShardedBatches(small, 16, mesh) as batches:
        return [*found, waiting("jax", batches, step, 100 if full else 20)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_corpus(Path(name) / "corpus", 20_000_000 if args.full else 4_000_000)
        found = (torch_rows if args.side == "torch" else jax_rows)(Path(name), args.full)
    print(json.dumps([dataclasses.asdict(row) for row in found]))


if __name__ == "__main__":
    main()
