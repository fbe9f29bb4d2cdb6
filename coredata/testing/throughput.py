"""How many tokens a second a dataset gives, on this machine, right now."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from coredata.datasets.protocol import Batch, Dataset
from coredata.loading import BatchLoader
from coredata.sampling import GlobalBatchSampler


@dataclass(frozen=True)
class Throughput:
    """A measured rate."""

    name: str
    batch_size: int
    sequence_length: int
    batches: int
    tokens_per_second: float


def measure_throughput(
    dataset: Dataset, *, batch_size: int = 16, seconds: float = 0.5
) -> list[Throughput]:
    """Time `get_batch` in the order of the samples, and a loader with prefetch over the same.

    Tokens are counted as the elements of the field `tokens`. The first batch, which may compile,
    is not timed.
    """
    rows = min(batch_size, len(dataset))
    starts = cycle(range(0, len(dataset) - rows + 1, rows))

    def read() -> Batch:
        start = next(starts)
        return dataset.get_batch(np.arange(start, start + rows))

    results = [_measure("get_batch", read, rows, seconds)]
    with BatchLoader(dataset, GlobalBatchSampler(len(dataset), 0, rows)) as loader:
        batches = _again(loader)
        results.append(_measure("BatchLoader, prefetch 2", lambda: next(batches), rows, seconds))
    return results


def _again(loader: BatchLoader) -> Iterator[Batch]:
    """Epoch after epoch."""
    while True:
        yield from loader
        loader.rewind()


def _measure(name: str, read: Callable[[], Batch], rows: int, seconds: float) -> Throughput:
    length = int(read()["tokens"].shape[1])
    batches, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        read()
        batches += 1
    return Throughput(name, rows, length, batches, batches * rows * length / elapsed)
