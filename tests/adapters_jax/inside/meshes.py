"""What the tests here share: meshes, datasets, and the batches of the numpy loader."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from coredata.datasets.protocol import Batch, Dataset
from coredata.loading import BatchLoader
from coredata.sampling import GlobalBatchSampler


def mesh_of(**axes: int) -> Mesh:
    count = int(np.prod(list(axes.values())))
    return Mesh(np.array(jax.devices()[:count]).reshape(tuple(axes.values())), tuple(axes))


@dataclass
class Watched:
    """A dataset that notes what was read, and fails `failures` times at sample `broken`."""

    source: Dataset
    broken: int | None = None
    failures: int = 1
    reads: list[int] = field(default_factory=list)

    def __len__(self):
        return len(self.source)

    def __getitem__(self, index):
        return self.source[index]

    def __getitems__(self, indices):
        return self.source.__getitems__(indices)

    def get_batch(self, indices):
        if self.broken in indices.tolist() and self.failures:
            self.failures -= 1
            raise OSError("the disk is on fire")
        self.reads.extend(indices.tolist())
        return self.source.get_batch(indices)

    def fingerprint(self):
        return self.source.fingerprint()


@dataclass
class Told:
    """Ranks whose other processes hold the given plans."""

    plans: list[dict]
    gathered: int = 0
    rank: int = 0
    node_rank: int = 0
    builds: bool = True

    @property
    def world_size(self) -> int:
        return len(self.plans)

    def all_gather(self, message: str) -> list[str]:
        self.gathered += 1
        texts = [json.dumps(plan, sort_keys=True) for plan in self.plans]
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        return digests if self.gathered == 1 else texts


def numpy_loader(dataset: Dataset, size: Any, start: int = 0, drop_last: bool = True):
    sampler = GlobalBatchSampler(len(dataset), start, size, drop_last)
    return BatchLoader(dataset, sampler, prefetch=0)


def numpy_batches(
    dataset: Dataset, size: Any, steps: int | None = None, drop_last: bool = True
) -> list[Batch]:
    """What the arrays on devices must hold: the numpy loader's batches, 64-bit integers as 32."""
    batches = islice(numpy_loader(dataset, size, drop_last=drop_last), steps)
    return [
        {
            name: array.astype(np.int32) if array.dtype == np.int64 else array
            for name, array in batch.items()
        }
        for batch in batches
    ]


def as_numpy(batch: Mapping[str, jax.Array], columns: np.ndarray | None = None) -> Batch:
    """A batch as host arrays; the columns of fields of the sequence in the order `columns`."""
    whole = {name: np.asarray(array) for name, array in batch.items()}
    if columns is None:
        return whole
    return {name: array[:, columns] if array.ndim == 2 else array for name, array in whole.items()}
