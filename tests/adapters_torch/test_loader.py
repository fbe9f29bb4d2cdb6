import json
import multiprocessing
import pickle
import random
import threading

import numpy as np
import pytest
from coredata_torch import PaddedToLongest, PretrainingDataLoader

from coredata.loading import BatchLoader, StateMismatchError
from coredata.sampling import (
    GlobalBatchSampler,
    HybridCPMegatronPretrainingSampler,
    MegatronFullValidationSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
    PaddedPretrainingSampler,
)
from coredata.testing import assert_resume_exact, assert_same_batch

SAMPLERS = {
    "sequential": lambda n: MegatronPretrainingSampler(n, 0, 3, 1, 2),
    "sequential, all": lambda n: MegatronPretrainingSampler(n, 0, 3, 1, 2, drop_last=False),
    "cyclic": lambda n: MegatronPretrainingRandomSampler(n, 0, 8, 1, 2, False),
    "cyclic, shards": lambda n: MegatronPretrainingRandomSampler(n, 0, 8, 1, 2, True),
    "hybrid": lambda n: HybridCPMegatronPretrainingSampler(n, 0, 2, 12, 1, 2),
    "full validation": lambda n: MegatronFullValidationSampler(n, 1, 2),
    "padded": lambda n: PaddedPretrainingSampler(n, 0, 5, 0, 2),
    "global": lambda n: GlobalBatchSampler(n, 0, 8, drop_last=False),
}
STEPS = 20

# From Python 3.12 on, forking beside threads warns; torch and numba have some.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


def arrays(batch):
    return {name: tensor.numpy() for name, tensor in batch.items()}


def assert_equal_steps(loader, oracle, steps, what):
    for step in range(steps):
        expected = next(oracle, None)
        batch = next(loader, None)
        assert (batch is None) == (expected is None), f"{what}: one ended at step {step}"
        if expected is None:
            return
        assert_same_batch(arrays(batch), expected, f"{what}, step {step}")
        assert loader.state_dict() == oracle.state_dict()


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_gives_the_numpy_loaders_batches(gpt, name):
    sampler = SAMPLERS[name](len(gpt))
    with PretrainingDataLoader(gpt, sampler) as loader:
        assert len(loader) == len(sampler)
        assert_equal_steps(loader, BatchLoader(gpt, sampler, prefetch=0), 90, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers", "method"),
    [
        ("cyclic", 1, "fork"),
        ("padded", 2, "fork"),
        ("cyclic", 2, "spawn"),
        ("hybrid", 1, "forkserver"),
    ],
)
def test_workers_give_the_numpy_loaders_batches_and_resume_each_other(gpt, name, workers, method):
    sampler = SAMPLERS[name](len(gpt))
    stop = random.Random(f"{name} {workers} {method}").randrange(1, 12)
    oracle = BatchLoader(gpt, sampler, prefetch=0)
    with PretrainingDataLoader(gpt, sampler, num_workers=workers, start_method=method) as loader:
        assert_equal_steps(loader, oracle, stop, f"{workers} {method}")
        state = json.loads(json.dumps(loader.state_dict()))
    for other, start in ((0, None), (2 if workers == 1 else 1, "fork")):
        with (
            PretrainingDataLoader(gpt, sampler, num_workers=other, start_method=start) as loader,
            BatchLoader(gpt, sampler, prefetch=0) as again,
        ):
            loader.load_state_dict(state)
            again.load_state_dict(state)
            assert_equal_steps(loader, again, STEPS, f"{workers} {method}, then {other} workers")


@pytest.mark.parametrize("prefetch", [0, 3])
def test_resume_at_every_step(numbers, prefetch):
    sampler = SAMPLERS["padded"](97)
    assert_resume_exact(lambda: PretrainingDataLoader(numbers, sampler, prefetch=prefetch), 12)


def test_it_goes_on_from_the_numpy_loader_and_back(gpt):
    sampler = SAMPLERS["cyclic"](len(gpt))
    numpy_loader = BatchLoader(gpt, sampler)
    for _ in range(7):
        next(numpy_loader)
    with PretrainingDataLoader(gpt, sampler) as loader:
        loader.load_state_dict(numpy_loader.state_dict())
        next(loader)
        next(numpy_loader)
        numpy_loader.load_state_dict(loader.state_dict())
        assert_equal_steps(loader, numpy_loader, 5, "after both")
    numpy_loader.close()


def test_an_end_a_rewind_and_a_seek(numbers):
    with PretrainingDataLoader(numbers, MegatronPretrainingSampler(97, 80, 4, 0, 2)) as loader:
        assert len(loader) == 2
        first = [batch["tokens"][0, 0].item() for batch in loader]
        assert first == [320, 352]
        assert list(loader) == []
        loader.rewind()
        assert len(loader) == 2
        loader.seek(8)
        assert next(loader)["tokens"][0, 0].item() == 32
        with pytest.raises(ValueError, match="consumed_samples: 98 of 97"):
            loader.seek(98)
        assert loader.consumed_samples == 16


def test_repeat_starts_again_from_the_first_sample(numbers):
    sampler = MegatronPretrainingSampler(97, 80, 8, 0, 1)
    with PretrainingDataLoader(numbers, sampler, repeat=True) as loader:
        assert [next(loader)["tokens"][0, 0].item() for _ in range(4)] == [320, 352, 0, 32]
        assert loader.consumed_samples == 16
        loader.load_state_dict({**loader.state_dict(), "consumed_samples": 97})
        assert next(loader)["tokens"][0, 0].item() == 0


def test_repeat_of_nothing_ends(numbers):
    sampler = MegatronPretrainingSampler(97, 0, 100, 0, 1)
    assert list(PretrainingDataLoader(numbers, sampler, repeat=True)) == []


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failed_batch_is_tried_again(broken, workers):
    sampler = MegatronPretrainingSampler(97, 0, 4, 0, 1)
    with PretrainingDataLoader(
        broken, sampler, num_workers=workers, start_method="fork" if workers else None
    ) as loader:
        next(loader)
        next(loader)
        for _ in range(2):
            with pytest.raises(OSError, match="the disk is gone"):
                next(loader)
            assert loader.consumed_samples == 8
        broken.works = True
        assert next(loader)["tokens"][0, 0].item() == 32


class Unusual(Exception):
    """Cannot be made of one text, nor pickled as it is."""

    def __init__(self, place, number):
        super().__init__(f"{place}: {number}", object())
        self.lock = threading.Lock()


class Raising:
    """Raises whatever is asked of it at sample 8."""

    def __init__(self, numbers, error):
        self.numbers = numbers
        self.error = error

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        return self.numbers[index]

    def __getitems__(self, indices):
        return self.numbers.__getitems__(indices)

    def get_batch(self, indices):
        if 8 in indices:
            raise self.error()
        return self.numbers.get_batch(indices)

    def fingerprint(self):
        return self.numbers.fingerprint()


def _noted():
    error = FileNotFoundError(2, "No such file", "/data/a.bin")
    error.add_note("while reading a.bin")
    return error


NOTE = "while reading the batch of samples [8, 9, 10, 11], after which consumed_samples is 12"


@pytest.mark.parametrize(
    ("make", "kind", "text", "notes"),
    [
        (_noted, FileNotFoundError, "[Errno 2] No such file: '/data/a.bin'", ["while reading a.b"]),
        (lambda: UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), UnicodeDecodeError, "bad", []),
        (lambda: Unusual("here", 3), Unusual, "('here: 3', '<object object at", []),
        (lambda: StopIteration(5), RuntimeError, "the dataset raised StopIteration(5)", []),
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_is_the_same_from_a_worker(numbers, workers, make, kind, text, notes):
    if make().__class__ is Unusual and not workers:
        text = "('here: 3', <object object at"
    sampler = MegatronPretrainingSampler(97, 0, 4, 0, 1)
    options = {"num_workers": workers, "start_method": "fork" if workers else None}
    with PretrainingDataLoader(Raising(numbers, make), sampler, **options) as loader:
        next(loader)
        next(loader)
        with pytest.raises(kind) as raised:
            next(loader)
    error = raised.value
    assert type(error) is kind
    assert text in str(error)
    assert len(error.__notes__) == len(notes) + 1
    assert error.__notes__[-1] == NOTE
    if kind is FileNotFoundError:
        assert (error.errno, error.filename) == (2, "/data/a.bin")
    if workers:
        assert "in get_batch" in str(error.__cause__)


def test_an_error_that_cannot_be_sent_names_its_samples_all_the_same(numbers):
    hidden = type("Hidden", (ValueError,), {})
    sampler = MegatronPretrainingSampler(97, 8, 4, 0, 1)
    dataset = Raising(numbers, lambda: hidden("not to be found"))
    with (
        PretrainingDataLoader(dataset, sampler, num_workers=1, start_method="fork") as loader,
        pytest.raises(RuntimeError, match="Hidden: not to be found") as raised,
    ):
        next(loader)
    assert raised.value.__notes__ == [NOTE]


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_an_error_has_its_note_however_workers_start(numbers, start_method):
    sampler = MegatronPretrainingSampler(101, 92, 4, 0, 1)
    with PretrainingDataLoader(
        numbers, sampler, num_workers=1, start_method=start_method
    ) as loader:
        next(loader)
        with pytest.raises(IndexError) as raised:
            next(loader)
    assert raised.value.__notes__ == [
        "while reading the batch of samples [96, 97, 98, 99], after which consumed_samples is 100"
    ]


def test_use_after_close(numbers):
    loader = PretrainingDataLoader(numbers, MegatronPretrainingSampler(97, 0, 4, 0, 1))
    next(loader)
    loader.close()
    loader.close()
    assert loader.closed
    with pytest.raises(RuntimeError, match=r"closed \(at consumed_samples=4\). Make another one"):
        next(loader)
    with pytest.raises(RuntimeError, match="closed, so its position cannot be changed"):
        loader.rewind()
    assert loader.state_dict()["consumed_samples"] == 4


def test_a_state_of_other_data_is_refused(numbers, other_numbers):
    sampler = MegatronPretrainingSampler(97, 0, 4, 0, 1)
    state = PretrainingDataLoader(other_numbers, sampler).state_dict()
    with pytest.raises(StateMismatchError, match='name: the state has "other"'):
        PretrainingDataLoader(numbers, sampler).load_state_dict(state)
    cyclic = SAMPLERS["cyclic"](97)
    with pytest.raises(StateMismatchError, match=r"order\.order"):
        PretrainingDataLoader(other_numbers, cyclic).load_state_dict(state)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers is -1"),
        ({"prefetch": -1}, "prefetch -1; expected 0 or more"),
        ({"num_workers": 2, "prefetch": 0}, "a prefetch of at least 1, such as 2"),
        ({"start_method": "threads"}, "expected one of fork, spawn, forkserver"),
    ],
)
def test_options_out_of_range(numbers, options, text):
    sampler = MegatronPretrainingSampler(97, 0, 4, 0, 1)
    with pytest.raises(ValueError, match=text):
        PretrainingDataLoader(numbers, sampler, **options)


def test_a_pickled_copy_goes_on_by_itself(numbers):
    with PretrainingDataLoader(numbers, MegatronPretrainingSampler(97, 0, 4, 0, 1)) as loader:
        next(loader)
        with pickle.loads(pickle.dumps(loader)) as copy:
            assert next(copy)["tokens"][0, 0].item() == 16
        assert next(loader)["tokens"][0, 0].item() == 16


def _next_in_a_fork(loader, pipe):
    try:
        next(loader)
    except RuntimeError as error:
        pipe.send(str(error))


def test_a_fork_of_a_reading_loader_says_so(numbers):
    ours, theirs = multiprocessing.Pipe()
    with PretrainingDataLoader(numbers, MegatronPretrainingSampler(97, 0, 4, 0, 1)) as loader:
        next(loader)
        child = multiprocessing.get_context("fork").Process(
            target=_next_in_a_fork, args=(loader, theirs)
        )
        child.start()
        assert ours.poll(20)
        assert "make one in each process" in ours.recv()
        child.join(20)
        assert next(loader)["tokens"][0, 0].item() == 16


def test_samples_of_different_lengths(ragged):
    sampler = MegatronPretrainingSampler(20, 0, 3, 0, 1)
    with PretrainingDataLoader(PaddedToLongest(ragged), sampler) as loader:
        shapes = [tuple(batch["tokens"].shape) for batch in loader]
    assert shapes == [(3, 3), (3, 5), (3, 4), (3, 5), (3, 5), (3, 3)]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_rank_without_samples_in_the_last_batch(ragged, workers):
    """20 samples in blocks of 2 ranks x 3: the last block has two, both of rank 0."""
    found = []
    for rank in range(2):
        sampler = MegatronPretrainingSampler(20, 18, 3, rank, 2, drop_last=False)
        dataset = PaddedToLongest(ragged)
        with PretrainingDataLoader(dataset, sampler, num_workers=workers) as loader:
            found.append([tuple(batch["tokens"].shape) for batch in loader])
    assert found == [[(2, 5)], [(0, 1)]]


def test_a_change_to_a_batch_shows_nowhere_else(numbers):
    with PretrainingDataLoader(numbers, MegatronPretrainingSampler(97, 0, 4, 0, 1)) as loader:
        next(loader)["tokens"].fill_(0)
        loader.rewind()
        assert next(loader)["tokens"][0].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(numbers[0]["tokens"], [0, 1, 2, 3])
