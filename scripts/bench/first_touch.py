"""The first read of a mapped file, and what advice to the kernel does for it.

The file is put out of the page cache, opened and mapped anew, and read in batches of random
samples, as training does. The advice is given to the mapping before the first batch; what it costs
is part of the time.
"""

import ctypes
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.get_batch import batches, open_ours

ADVICE = {"none": None, "random": 1, "sequential": 2, "will need": 3, "huge pages": 14}
POPULATE_READ = 22
"""`MADV_POPULATE_READ`: read and map all pages now. Linux 5.14 and later."""


@dataclass(frozen=True)
class Touch:
    """One line of the table. Rates are in million tokens a second, medians of 3 runs.

    `cold`: the file is not in memory. `mapped_anew`: it is, but this mapping has no page yet.
    `once_more`: the same batches again.
    """

    advice: str
    cold: int
    mapped_anew: int
    once_more: int


def rows(full: bool) -> list[Touch]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        tokens = 400_000_000 if full else 20_000_000
        open_ours(directory, 4096, tokens)
        every = {**ADVICE, "populate": POPULATE_READ}
        return [_touch(directory, tokens, name, advice) for name, advice in every.items()]


def _touch(directory: Path, tokens: int, name: str, advice: int | None) -> Touch:
    found = []
    for _ in range(3):
        _forget(directory / "corpus.bin")
        cold, _ = _read(directory, tokens, advice)
        found.append((cold, *_read(directory, tokens, advice)))
    return Touch(name, *(round(statistics.median(column)) for column in zip(*found, strict=True)))


def _forget(path: Path) -> None:
    """Put a file out of the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def _read(directory: Path, tokens: int, advice: int | None) -> tuple[float, float]:
    """Million tokens a second of the first pass over the batches, and of the second."""
    dataset = open_ours(directory, 4096, tokens)
    view = dataset.dataset.bin_reader.view()
    wanted = batches(len(dataset), 8)
    dataset.order.spans(wanted[0])
    rates = []
    for again in range(2):
        begun = time.perf_counter()
        if advice is not None and not again:
            libc = ctypes.CDLL(None, use_errno=True)
            address = ctypes.c_void_p(view.ctypes.data)
            if libc.madvise(address, ctypes.c_size_t(view.size), advice):
                return float("nan"), float("nan")
        for indices in wanted:
            dataset.get_batch(indices)
        rates.append(wanted.size * 4096 / (time.perf_counter() - begun) / 1e6)
    return rates[0], rates[1]
