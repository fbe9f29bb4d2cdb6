"""One process of the storage benchmark: reads batches of a GPT dataset, prints what it took.

`python -m scripts.bench.storage_reader '{"prefixes": […], …}'`; the answer is a line of JSON.
"""

import json
import sys
import time
import zlib
from typing import Any

import numpy as np

from coredata import (
    BlendedDataset,
    GPTDataset,
    GPTDatasetConfig,
    IndexedDataset,
    Split,
)
from coredata.loading import BatchLoader
from coredata.sampling import MegatronPretrainingSampler
from coredata.storage import ByteReader, RangedObject
from coredata.text import ByteTokenizer
from scripts.bench.harness import _memory

ROWS = 8
SEQUENCE_LENGTH = 4096


class OneBlock(ByteReader):
    """The reference's way to read an object: one large block per file is kept, none is shared.

    A range that the block lacks replaces it by the block that the range begins in, made longer
    where the range ends behind it.
    """

    def __init__(self, url: str, storage_options: dict[str, Any], block: int) -> None:
        import fsspec

        self._remote, self._key = fsspec.core.url_to_fs(url, **storage_options)
        self._url, self._block = url, block
        self._size = self._remote.size(self._key)
        self._start, self._data = 0, b""

    @property
    def path(self) -> str:
        return self._url

    @property
    def size(self) -> int:
        return self._size

    def view(self) -> None:
        return None

    def read(self, offset: int, length: int) -> bytes:
        if not self._start <= offset <= offset + length <= self._start + len(self._data):
            self._start = offset // self._block * self._block
            end = min(max(self._start + self._block, offset + length), self._size)
            self._data = self._remote.cat_file(self._key, start=self._start, end=end)
        return self._data[offset - self._start : offset - self._start + length]

    def read_ranges(self, offsets, lengths, out, out_offsets) -> None:
        for offset, length, start in zip(offsets, lengths, out_offsets, strict=True):
            data = self.read(int(offset), int(length))
            out[start : start + length] = np.frombuffer(data, np.uint8)

    def prefetch(self, offsets, lengths) -> None:
        pass

    def close(self) -> None:
        self._data = b""


def dataset_of(task: dict[str, Any]) -> Any:
    """The blend of a task's prefixes, or the one dataset."""
    prefixes, options = task["prefixes"], task["options"]
    config = GPTDatasetConfig(
        random_seed=7,
        sequence_length=SEQUENCE_LENGTH,
        blend=(prefixes, None),
        split="1",
        tokenizer=ByteTokenizer(),
        storage_options=options,
        mmap_bin_files=True,
    )
    datasets = []
    for prefix in prefixes:
        source = IndexedDataset(prefix, storage_options=options)
        if task["block"]:
            reader = OneBlock(f"{prefix}.bin", options, task["block"])
            source._opened = (source.index, reader)
        exposed = np.arange(len(source), dtype=np.int32)
        datasets.append(GPTDataset(source, prefix, exposed, None, Split.train, config))
    if len(datasets) == 1:
        return datasets[0]
    return BlendedDataset(datasets, [len(d) for d in datasets], None, config)


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Read `warm` batches, then `steps` more with `step` seconds of training after each."""
    dataset = dataset_of(task)
    _compile(dataset)
    before = _memory("VmRSS")
    share = task["rank"], task["ranks"]
    samples = (task["warm"] + task["steps"]) * ROWS * task["ranks"]  # nothing is fetched beyond
    sampler = MegatronPretrainingSampler(samples, 0, ROWS, *share)
    ahead = {} if task["block"] else {"prefetch": 4, "threads": 4, "look_ahead": task["ahead"]}
    digest = 0
    with BatchLoader(dataset, sampler, **ahead) as loader:
        begun = time.perf_counter()
        for step in range(task["warm"] + task["steps"]):
            if step == task["warm"]:
                begun = time.perf_counter()
            digest = zlib.crc32(next(loader)["tokens"].tobytes(), digest)
            time.sleep(task["step"])
        seconds = time.perf_counter() - begun
    counters = {}
    reader = (dataset if isinstance(dataset, GPTDataset) else dataset.datasets[0]).dataset
    if isinstance(reader.bin_reader, RangedObject):
        counters = vars(reader.bin_reader.counters)
    return {
        "seconds": seconds,
        "tokens": task["steps"] * ROWS * SEQUENCE_LENGTH,
        "digest": digest,
        "memory": _memory("VmHWM") - before,
        "counters": counters,
    }


def _compile(dataset: Any) -> None:
    """Have kernels compiled, and files opened, before anything is measured: one batch is read."""
    dataset.get_batch(np.arange(len(dataset) - ROWS, len(dataset)))


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
