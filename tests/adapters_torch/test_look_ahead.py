"""Workers are told of the batches that they will read, and of no others."""

from collections import deque

import numpy as np
import pytest
import torch
from coredata_torch import PretrainingDataLoader
from coredata_torch.sources import _Numbers

from coredata.loading.prefetch import steps
from coredata.sampling import MegatronPretrainingRandomSampler, MegatronPretrainingSampler
from coredata.testing import numbered_dataset

# From Python 3.12 on, forking beside threads warns; torch and numba have some.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),  # more than there are cores
]


class Noting:
    """97 samples; each process notes, in a file of its own, what it is told of and what it reads.

    With `broken`, looking ahead fails.
    """

    def __init__(self, directory, broken=False):
        self._samples = numbered_dataset(97)
        self._directory = directory
        self._broken = broken

    def _note(self, what, indices):
        worker = torch_worker()
        with open(self._directory / f"{worker}-{what}", "a") as file:
            file.write(" ".join(map(str, np.asarray(indices).tolist())) + "\n")

    def __len__(self):
        return len(self._samples)

    def __getitem__(self, index):
        return self._samples[index]

    def __getitems__(self, indices):
        return self._samples.__getitems__(indices)

    def get_batch(self, indices):
        self._note("reads", indices)
        return self._samples.get_batch(indices)

    def fingerprint(self):
        return self._samples.fingerprint()

    def prefetch(self, indices):
        self._note("told", indices)
        if self._broken:
            raise OSError("storage is away")


def torch_worker():
    info = torch.utils.data.get_worker_info()
    return "main" if info is None else info.id


def noted(directory, worker, what):
    path = directory / f"{worker}-{what}"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("look_ahead", [1, 4, 5])
def test_a_worker_is_told_of_its_own_batches_before_it_reads_them(tmp_path, workers, look_ahead):
    dataset = Noting(tmp_path)
    sampler = MegatronPretrainingSampler(97, 5, 2, 0, 2)
    loader = PretrainingDataLoader(
        dataset, sampler, num_workers=workers, start_method="fork", look_ahead=look_ahead
    )
    with loader:
        found = [batch["tokens"].numpy() for batch in loader]
    expected = [dataset._samples.get_batch(np.array(numbers))["tokens"] for numbers in sampler]
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))
    for worker in range(workers):
        reads = noted(tmp_path, worker, "reads")
        assert len(reads) in (23 // workers, 23 // workers + 1)
        assert noted(tmp_path, worker, "told") == reads[1:]
    assert noted(tmp_path, "main", "told") == []


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("told", [0, 1, 3])
def test_what_goes_with_each_batch(workers, told):
    sampler = MegatronPretrainingRandomSampler(30, 0, 2, 0, 1, False)
    plan, due = steps(sampler), deque()
    numbers = iter(_Numbers(steps(sampler), due, workers, told))
    batches = [next(plan) for _ in range(60)]
    for step in range(40):
        asked = next(numbers)
        assert asked.step.indices.tolist() == batches[step].indices.tolist()
        assert due.popleft().consumed_samples == batches[step].consumed_samples
        fresh = [tuple(indices.tolist()) for indices in asked.ahead]
        first = step < workers
        wanted = range(step + workers, step + told * workers + 1, workers)
        wanted = wanted if first else wanted[-1:]
        assert fresh == [tuple(batches[later].indices.tolist()) for later in wanted]
    assert not due


def test_without_look_ahead_nobody_is_told(tmp_path):
    sampler = MegatronPretrainingSampler(97, 0, 4, 0, 1)
    loader = PretrainingDataLoader(
        Noting(tmp_path), sampler, num_workers=2, start_method="fork", look_ahead=0
    )
    with loader:
        assert sum(1 for _ in loader) == 24
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-reads", "1-reads"]


def test_what_fails_ahead_fails_nobody(tmp_path):
    sampler = MegatronPretrainingSampler(97, 0, 4, 0, 1)
    loader = PretrainingDataLoader(
        Noting(tmp_path, broken=True), sampler, num_workers=1, start_method="fork"
    )
    with loader:
        assert sum(1 for _ in loader) == 24
    assert len(noted(tmp_path, 0, "told")) == 23


def test_threads_look_ahead_as_far_as_they_are_told(tmp_path):
    sampler = MegatronPretrainingSampler(97, 0, 4, 0, 1)
    with PretrainingDataLoader(Noting(tmp_path), sampler, look_ahead=3, prefetch=1) as loader:
        next(loader)
    assert 4 <= len(noted(tmp_path, "main", "told")) <= 6
    with pytest.raises(ValueError, match=r"look_ahead is -1, expected 0 \(no hints\) or more"):
        PretrainingDataLoader(Noting(tmp_path), sampler, look_ahead=-1)
