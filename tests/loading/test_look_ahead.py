"""What datasets are told of batches to come, and that it never changes what is read."""

import threading

import numpy as np
import pytest

from coredata.loading import BatchLoader
from coredata.sampling import GlobalBatchSampler


class Told:
    """Samples 0 … 39; notes which batches it is told of, and which it is asked for."""

    def __init__(self, fails=()):
        self.hints, self.reads, self.fails = [], [], set(fails)
        self.lock = threading.Lock()

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return {"x": np.array(index)}

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def get_batch(self, indices):
        with self.lock:
            self.reads.append(indices.tolist())
        return {"x": np.asarray(indices)}

    def fingerprint(self):
        return {"class": "Told"}

    def prefetch(self, indices):
        with self.lock:
            self.hints.append(indices.tolist())
        if self.fails & set(indices.tolist()):
            raise OSError("cannot be fetched")


def batches_of(loader):
    with loader:
        return [batch["x"].tolist() for batch in loader]


ALL = [[i, i + 1] for i in range(0, 40, 2)]


def loader_of(dataset, **options):
    return BatchLoader(dataset, GlobalBatchSampler(40, 0, 2), **options)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("look_ahead", [1, 4, 100])
def test_every_batch_is_announced_in_order(threads, look_ahead):
    dataset = Told()
    assert batches_of(loader_of(dataset, threads=threads, look_ahead=look_ahead)) == ALL
    assert dataset.hints == ALL
    assert sorted(dataset.reads) == ALL


def test_only_so_many_batches_ahead():
    dataset = Told()
    with loader_of(dataset, prefetch=2, look_ahead=4) as loader:
        next(loader)
        loader._prefetcher._planner.submit(int).result()
        assert dataset.hints == ALL[: 1 + 2 + 4]
        next(loader)
        loader._prefetcher._planner.submit(int).result()
        assert dataset.hints == ALL[: 2 + 2 + 4]


@pytest.mark.parametrize("options", [{"look_ahead": 0}, {"prefetch": 0}])
def test_without(options):
    dataset = Told()
    assert batches_of(loader_of(dataset, **options)) == ALL
    assert dataset.hints == []


def test_hints_that_fail_change_nothing():
    dataset = Told(fails=range(40))
    assert batches_of(loader_of(dataset, look_ahead=3)) == ALL


def test_after_a_jump_hints_go_on_from_there():
    dataset = Told()
    with loader_of(dataset, look_ahead=3) as loader:
        next(loader)
        loader.seek(20)
        dataset.hints.clear()
        assert [batch["x"].tolist() for batch in loader] == ALL[10:]
    assert dataset.hints == ALL[10:]


def test_refused():
    with pytest.raises(ValueError, match=r"look_ahead is -1, expected 0 \(no hints\) or more"):
        loader_of(Told(), look_ahead=-1)
