"""One process of the storage benchmark: builds the datasets of many prefixes, prints the seconds.

`python -m scripts.bench.storage_start '{"prefixes": […], "options": …, "cache": …}'`.
"""

import json
import sys
import tempfile
import time
from typing import Any

import numpy as np

from coredata import (
    BlendedMegatronDatasetBuilder,
    GPTDataset,
    GPTDatasetConfig,
    IndexedDatasetBuilder,
)
from coredata.text import ByteTokenizer

SAMPLES = 1000


def run(task: dict[str, Any]) -> float:
    """Seconds from a configuration to datasets that can be read.

    Imports are not what is measured, nor is the loading of compiled kernels: Numba imports
    whatever packages that are installed add to it.
    """
    import s3fs  # noqa: F401

    with tempfile.TemporaryDirectory() as directory:
        for _ in range(2):  # builds indices, then takes them from the cache
            built(local_pair(directory), None, f"{directory}/cache")
    begun = time.perf_counter()
    train = built(task["prefixes"], task["options"], task["cache"])
    seconds = time.perf_counter() - begun
    if len(train) < SAMPLES:
        raise RuntimeError("the blend is too short")
    return seconds


def built(prefixes: list[str], options: dict[str, Any] | None, cache: str) -> Any:
    """A blend of the prefixes."""
    config = GPTDatasetConfig(
        random_seed=7,
        sequence_length=1024,
        blend=(prefixes, [1.0] * len(prefixes)),
        split="1",
        tokenizer=ByteTokenizer(),
        storage_options=options,
        path_to_cache=cache,
        num_dataset_builder_threads=16,
    )
    sizes = [SAMPLES, 0, 0]
    return BlendedMegatronDatasetBuilder(GPTDataset, sizes, None, config).build()[0]


def local_pair(directory: str) -> list[str]:
    """Two small token files."""
    prefixes = [f"{directory}/{number}" for number in range(2)]
    for prefix in prefixes:
        with IndexedDatasetBuilder(prefix, np.uint16) as builder:
            builder.add_documents(np.zeros(5000, np.uint16), np.array([3000, 2000]))
    return prefixes


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
