"""One process of the storage benchmark: builds the datasets of many prefixes, prints the seconds.

`python -m scripts.bench.storage_start '{"prefixes": […], "options": …, "cache": …}'`.
"""

import json
import sys
import time
from typing import Any

from coredata import BlendedMegatronDatasetBuilder, GPTDataset, GPTDatasetConfig
from coredata.text import ByteTokenizer


def run(task: dict[str, Any]) -> float:
    """Seconds from a configuration to datasets that can be read."""
    import s3fs  # noqa: F401  imports are not what is measured

    config = GPTDatasetConfig(
        random_seed=7,
        sequence_length=1024,
        blend=(task["prefixes"], [1.0] * len(task["prefixes"])),
        split="1",
        tokenizer=ByteTokenizer(),
        storage_options=task["options"],
        path_to_cache=task["cache"],
        num_dataset_builder_threads=64,
    )
    begun = time.perf_counter()
    (train, _, _) = BlendedMegatronDatasetBuilder(GPTDataset, [1000, 0, 0], None, config).build()
    seconds = time.perf_counter() - begun
    if len(train) < 1000:
        raise RuntimeError("the blend is too short")
    return seconds


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
