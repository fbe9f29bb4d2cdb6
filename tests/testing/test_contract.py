import itertools
import threading

import numpy as np
import pytest

from coredata.testing import ArrayDataset, assert_dataset_contract, numbered_dataset, random_corpus
from coredata.testing.golden_gpt import golden_gpt_dataset
from coredata.testing.golden_vectors import golden_case


@pytest.mark.parametrize("samples", [1, 2, 50])
def test_an_array_dataset_keeps_it(samples):
    assert_dataset_contract(numbered_dataset(samples))


@pytest.mark.parametrize("name", ["one_epoch", "inter_document", "resets", "valid_keep_partial"])
def test_a_gpt_dataset_keeps_it(name):
    assert_dataset_contract(golden_gpt_dataset(golden_case("gpt", name)))


class Broken:
    """A dataset that breaks one promise; module level, so that it can be pickled."""

    def __init__(self):
        self.inner = numbered_dataset(20)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return {
            name: array[0]
            for name, array in self.get_batch(np.array([-1 if index is None else index])).items()
        }

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def get_batch(self, indices):
        return self.inner.get_batch(indices)

    def fingerprint(self):
        return self.inner.fingerprint()


class Cached(Broken):
    """Gives the same arrays again."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def get_batch(self, indices):
        key = indices.tobytes()
        if key not in self.cache:
            self.cache[key] = super().get_batch(indices)
        return self.cache[key]


class SharedMask(Broken):
    """Zeros the loss mask of all for batch padding."""

    def get_batch(self, indices):
        batch = super().get_batch(indices)
        if -1 in indices:
            batch["loss_mask"][:] = 0
        return batch


class LossOnPadding(Broken):
    def get_batch(self, indices):
        batch = super().get_batch(indices)
        batch["loss_mask"][:] = 1
        return batch


class Wraps(Broken):
    """Takes sample numbers modulo the length."""

    def get_batch(self, indices):
        return super().get_batch(np.where(indices < 0, -1, indices % 20))


class AccessOrder(Broken):
    """Depends on what was read before."""

    def __init__(self):
        super().__init__()
        self.reads = 0

    def get_batch(self, indices):
        batch = super().get_batch(indices)
        batch["tokens"] += self.reads
        self.reads += 1
        return batch


class OtherAlone(Broken):
    def __getitems__(self, indices):
        samples = super().__getitems__(indices)
        samples[0]["labels"] = samples[0]["labels"].astype(np.int32)
        return samples


class OneTooFew(Broken):
    def __getitems__(self, indices):
        return super().__getitems__(indices[:-1])


class Unsafe(Broken):
    """Reads into a buffer of its own that threads share."""

    def __init__(self):
        super().__init__()
        self.buffer = {}

    def get_batch(self, indices):
        self.buffer.update(super().get_batch(indices))
        if threading.current_thread() is not threading.main_thread():
            self.buffer["tokens"][:] = -5
        return {name: array.copy() for name, array in self.buffer.items()}


class RefusesNone(Broken):
    def get_batch(self, indices):
        if len(indices) == 0:
            return {}
        return super().get_batch(indices)


class Counting(Broken):
    """A fingerprint that changes."""

    counter = itertools.count()

    def fingerprint(self):
        return {"reads": next(self.counter)}


class NotJson(Broken):
    def fingerprint(self):
        return {"names": {1, 2}}


class ForgetsOnPickling(Broken):
    def __getstate__(self):
        return {"inner": ArrayDataset({"tokens": np.zeros((20, 4), np.int64)})}


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        (Cached, "after writing into a batch: field tokens"),
        (SharedMask, "samples beside batch padding, field loss_mask"),
        (LossOnPadding, "batch padding: its loss_mask is not zero everywhere"),
        (Wraps, "sample 20 of 20: expected an IndexError, got a sample"),
        (AccessOrder, "sample 0, field tokens"),
        (OtherAlone, "sample 0 from __getitems__, field labels: dtype is int32"),
        (OneTooFew, "__getitems__: 7 samples of 8"),
        (Unsafe, "get_batch from several threads, field tokens"),
        (RefusesNone, "get_batch of no samples: fields missing"),
        (Counting, "fingerprint: it was .* it must not change"),
        (NotJson, "fingerprint: JSON cannot hold it"),
        (ForgetsOnPickling, "get_batch of a pickled copy: fields missing"),
    ],
)
def test_a_broken_promise_is_named(broken, match):
    with pytest.raises(AssertionError, match=match):
        assert_dataset_contract(broken())


def test_an_empty_dataset():
    with pytest.raises(AssertionError, match="the dataset is empty"):
        assert_dataset_contract(numbered_dataset(0))


def test_not_a_dataset():
    with pytest.raises(AssertionError, match="list lacks a method of Dataset"):
        assert_dataset_contract([1, 2])


def test_corpora_are_seeded():
    one, same, other = random_corpus(1), random_corpus(1), random_corpus(2)
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert [len(a) for a in one] != [len(a) for a in other]
    assert all(document[-1] == 256 and (document[:-1] < 256).all() for document in one)
    assert max(len(document) for document in random_corpus(3, longest=5, eod=None)) <= 5
