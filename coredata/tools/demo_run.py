"""The training run of the demo: what is read and in which order, the same in every process."""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coredata.datasets import BlendedMegatronDatasetBuilder, GPTDataset, GPTDatasetConfig
from coredata.datasets.protocol import Batch, Dataset
from coredata.loading import BatchLoader
from coredata.sampling import MegatronPretrainingSampler
from coredata.storage import atomic_write
from coredata.text import demo_tokenizer

SPLIT = "98,1,1"
PLAN_FILE = "run.json"
STATE_FILE = "state.json"


@dataclass(frozen=True)
class DemoPlan:
    """All that decides which batches the run reads.

    Attributes:
        prefixes: token files.
        weights: the share of each.
        samples: training samples asked for.
        sequence_length: tokens in a sample.
        batch_size: samples in a batch.
        cache: directory of the index arrays.
    """

    prefixes: list[str]
    weights: list[float]
    samples: int
    sequence_length: int
    batch_size: int
    cache: str

    def config(self) -> GPTDatasetConfig:
        """As a trainer would write it."""
        return GPTDatasetConfig(
            random_seed=1234,
            sequence_length=self.sequence_length,
            blend=(self.prefixes, self.weights),
            split=SPLIT,
            path_to_cache=self.cache,
            tokenizer=demo_tokenizer(),
            inter_document_masking=True,
        )

    def datasets(self) -> list[Any]:
        """Train, valid and test."""
        held_out = max(self.samples // 100, 1)
        sizes = [self.samples, held_out, held_out]
        return BlendedMegatronDatasetBuilder(GPTDataset, sizes, config=self.config()).build()

    def loader(self, dataset: Dataset) -> BatchLoader:
        """Batches of the training data in order, one data-parallel rank."""
        sampler = MegatronPretrainingSampler(
            total_samples=len(dataset),
            consumed_samples=0,
            micro_batch_size=self.batch_size,
            data_parallel_rank=0,
            data_parallel_size=1,
        )
        return BatchLoader(dataset, sampler)


def digest(batch: Batch) -> str:
    """A short hash of every field of a batch."""
    value = hashlib.blake2b(digest_size=8)
    for name in sorted(batch):
        array = np.ascontiguousarray(batch[name])
        value.update(f"{name} {array.dtype.str} {array.shape}".encode())
        value.update(array.data)
    return value.hexdigest()


def save(directory: Path, plan: DemoPlan, state: Mapping[str, Any]) -> None:
    """Write the plan and the loader's state, from which another process goes on."""
    for name, content in ((PLAN_FILE, dataclasses.asdict(plan)), (STATE_FILE, dict(state))):
        with atomic_write(str(directory / name)) as file:
            file.write(json.dumps(content, indent=2).encode())


def continuation(directory: Path) -> Iterator[str]:
    """Digests of the batches after the saved state, read anew from the files."""
    plan = DemoPlan(**json.loads((directory / PLAN_FILE).read_text()))
    train, _, _ = plan.datasets()
    with plan.loader(train) as loader:
        loader.load_state_dict(json.loads((directory / STATE_FILE).read_text()))
        yield from map(digest, loader)


def continue_in_a_new_process(directory: Path) -> list[str]:
    """What `continuation` gives in a Python started for it.

    Raises:
        ChildProcessError: that process failed; the text ends with what it printed.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(directory)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ChildProcessError(
            f"the process that was to go on from {directory / STATE_FILE} ended with exit code "
            f"{done.returncode}:\n{done.stderr.strip()}"
        )
    return done.stdout.split()


if __name__ == "__main__":
    for line in continuation(Path(sys.argv[1])):
        print(line)
