import dataclasses
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from coredata.loading import BatchLoader, StateMismatchError
from coredata.sampling import (
    BatchSampler,
    MegatronPretrainingRandomSampler,
    MegatronPretrainingSampler,
)
from coredata.testing import numbered_dataset


def sequential(total=20, consumed=0, micro=2, rank=0, size=1, drop_last=True):
    return MegatronPretrainingSampler(
        total_samples=total,
        consumed_samples=consumed,
        micro_batch_size=micro,
        data_parallel_rank=rank,
        data_parallel_size=size,
        drop_last=drop_last,
    )


def cyclic(total=20, consumed=0, micro=2, rank=0, size=1):
    return MegatronPretrainingRandomSampler(
        total_samples=total,
        consumed_samples=consumed,
        micro_batch_size=micro,
        data_parallel_rank=rank,
        data_parallel_size=size,
        data_sharding=False,
    )


def first_tokens(batch):
    return (batch["tokens"][:, 0] // 4).tolist()


def reader_threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("coredata-loader")]


def wait_until_no_threads():
    deadline = time.monotonic() + 5
    while reader_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reader_threads() == []


class Wrapped:
    """A dataset that does something before each read."""

    def __init__(self, samples=20, before=lambda indices: None):
        self.inner = numbered_dataset(samples)
        self.before = before

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]

    def __getitems__(self, indices):
        return self.inner.__getitems__(indices)

    def get_batch(self, indices):
        self.before(indices)
        return self.inner.get_batch(indices)

    def fingerprint(self):
        return self.inner.fingerprint()


@pytest.mark.parametrize(("prefetch", "threads"), [(0, 1), (1, 1), (2, 1), (3, 4), (50, 3)])
def test_batches_come_in_the_order_of_the_sampler(prefetch, threads):
    delays = np.random.default_rng(0).uniform(0, 0.004, 20)
    dataset = Wrapped(before=lambda indices: time.sleep(delays[indices[0]]))
    sampler = sequential(micro=2, rank=1, size=2)
    with BatchLoader(dataset, sampler, prefetch=prefetch, threads=threads) as loader:
        assert len(loader) == 5
        batches = list(loader)
        assert reader_threads() == []
    assert [first_tokens(batch) for batch in batches] == [i.tolist() for i in sampler]
    assert sorted(batches[0]) == ["labels", "loss_mask", "position_ids", "tokens"]


def test_reads_ahead_no_further_than_asked():
    read = []
    with BatchLoader(
        Wrapped(before=lambda indices: read.append(indices[0])), sequential(), prefetch=3
    ) as loader:
        next(loader)
        deadline = time.monotonic() + 5
        while len(read) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert len(read) == 4
        assert loader.consumed_samples == 2


def test_nothing_starts_before_the_first_next():
    def refuse(indices):
        raise AssertionError("read")

    with BatchLoader(Wrapped(before=refuse), sequential()) as loader:
        assert len(loader) == 10
        assert loader.state_dict()["consumed_samples"] == 0
        loader.load_state_dict(loader.state_dict())
        assert reader_threads() == []


def test_the_state_counts_what_was_received_not_what_was_read_ahead():
    with BatchLoader(numbered_dataset(40), sequential(40, micro=2, size=4), prefetch=3) as loader:
        states = [loader.state_dict()["consumed_samples"]]
        states += [loader.state_dict()["consumed_samples"] for _ in loader]
    assert states == [0, 8, 16, 24, 32, 40]


def test_a_loop_that_was_left_goes_on_where_it_stopped():
    with BatchLoader(numbered_dataset(20), sequential()) as loader:
        seen = []
        for batch in loader:
            seen += first_tokens(batch)
            if len(seen) == 6:
                break
        assert len(loader) == 7
        for batch in loader:
            seen += first_tokens(batch)
    assert seen == list(range(20))


def test_the_end_stays_the_end_until_rewound():
    with BatchLoader(numbered_dataset(20), sequential(consumed=4)) as loader:
        assert len(list(loader)) == 8
        assert list(loader) == []
        assert len(loader) == 0
        assert next(loader, None) is None
        loader.rewind()
        assert len(loader) == 8
        assert first_tokens(next(loader)) == [4, 5]


def test_consumed_equals_total_is_an_empty_iteration():
    with BatchLoader(numbered_dataset(20), sequential(consumed=20)) as loader:
        assert len(loader) == 0
        assert list(loader) == []
        assert loader.state_dict()["consumed_samples"] == 20


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_cyclic_sampler_goes_on_epoch_after_epoch(prefetch):
    with BatchLoader(numbered_dataset(20), cyclic(), prefetch=prefetch) as loader:
        epochs = [[k for _ in range(10) for k in first_tokens(next(loader))] for _ in range(3)]
        assert loader.consumed_samples == 60
        assert len(loader) == 10
        next(loader)
        assert len(loader) == 9
    assert [sorted(epoch) for epoch in epochs] == [list(range(20))] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_a_cyclic_sampler_without_batches_does_not_turn_for_ever():
    class Empty(BatchSampler):
        total_samples = 0
        consumed_samples = 0
        cyclic = True

        def __len__(self):
            return 0

        def batches(self, start=0):
            return iter(())

        def consumed_after(self, batches):
            return 0

        def resume(self, consumed_samples):
            return self

        def order(self):
            return {}

    with (
        BatchLoader(numbered_dataset(20), Empty()) as loader,
        pytest.raises(ValueError, match="has no batch in an epoch"),
    ):
        next(loader)


def test_every_batch_has_arrays_of_its_own():
    with BatchLoader(numbered_dataset(20), sequential()) as loader:
        first = next(loader)
        first["tokens"][:] = -7
        first["loss_mask"][:] = 0
        rest = list(loader)
    arrays = [array for batch in [first, *rest] for array in batch.values()]
    for i, array in enumerate(arrays):
        assert array.flags.writeable
        assert not any(np.shares_memory(array, other) for other in arrays[i + 1 :])
    assert all((batch["loss_mask"] == 1).all() for batch in rest)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_arrives_when_its_batch_is_due_and_names_the_samples(prefetch):
    broken = [True]

    def fail_at_six(indices):
        if 6 in indices and broken[0]:
            raise OSError("disk on fire")

    loader = BatchLoader(Wrapped(before=fail_at_six), sequential(), prefetch=prefetch, threads=2)
    assert [first_tokens(next(loader)) for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(OSError, match="disk on fire") as raised:
        next(loader)
    assert raised.value.__notes__ == [
        "while reading the batch of samples [6, 7], after which consumed_samples is 8"
    ]
    assert reader_threads() == []
    assert loader.state_dict()["consumed_samples"] == 6
    broken[0] = False
    assert first_tokens(next(loader)) == [6, 7]  # the batch that failed is tried again
    loader.close()


def test_a_long_batch_is_named_by_its_first_samples():
    def fail(indices):
        raise OSError("disk on fire")

    with (
        BatchLoader(Wrapped(40, fail), sequential(40, micro=40)) as loader,
        pytest.raises(OSError, match="disk") as raised,
    ):
        next(loader)
    assert "14, 15, … (40 in all)], after which" in raised.value.__notes__[0]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_stop_iteration_of_the_dataset_is_not_the_end(prefetch):
    def stop(indices):
        raise StopIteration

    with (
        BatchLoader(Wrapped(before=stop), sequential(), prefetch=prefetch) as loader,
        pytest.raises(RuntimeError, match=r"the dataset raised StopIteration\(\)"),
    ):
        next(loader)


def test_an_interrupt_while_waiting_loses_nothing():
    gate = threading.Event()

    def interrupt():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.1)
        gate.set()

    with BatchLoader(Wrapped(before=lambda indices: gate.wait(5)), sequential()) as loader:
        timer = threading.Timer(0.2, interrupt)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            next(loader)
        timer.join()
        assert reader_threads() == []
        assert loader.consumed_samples == 0
        assert first_tokens(next(loader)) == [0, 1]


def test_close():
    loader = BatchLoader(numbered_dataset(20), sequential())
    next(loader)
    assert reader_threads() != []
    assert not loader.closed
    loader.close()
    loader.close()
    assert loader.closed
    assert reader_threads() == []
    assert loader.state_dict()["consumed_samples"] == 2
    with pytest.raises(RuntimeError, match=r"closed \(at consumed_samples=2\). Make another one"):
        next(loader)
    with pytest.raises(RuntimeError, match="closed, so its position cannot be changed"):
        loader.load_state_dict(loader.state_dict())
    with pytest.raises(RuntimeError, match="closed"):
        loader.rewind()


def test_a_block_that_raises_leaves_no_threads():
    loader = BatchLoader(numbered_dataset(20), sequential(), threads=3)

    def run():
        with loader:
            next(loader)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert loader.closed
    assert reader_threads() == []


def test_a_dropped_loader_leaves_no_threads():
    loader = BatchLoader(numbered_dataset(20), cyclic(), threads=2)
    next(loader)
    assert reader_threads() != []
    del loader
    gc.collect()
    wait_until_no_threads()


def test_many_rewinds_keep_nothing():
    loader = BatchLoader(numbered_dataset(20), sequential())
    for _ in range(30):
        next(loader)
        loader.rewind()
        assert reader_threads() == []
    loader.close()
    gc.collect()
    from coredata.loading.prefetch import Prefetcher

    assert [o for o in gc.get_objects() if type(o) is Prefetcher] == []


@pytest.mark.parametrize("ending", ["", "raise KeyboardInterrupt", "del loader", "loader.close()"])
def test_the_interpreter_exits(ending):
    code = f"""
from coredata.loading import BatchLoader
from coredata.sampling import MegatronPretrainingRandomSampler
from coredata.testing import numbered_dataset
sampler = MegatronPretrainingRandomSampler(
    total_samples=20, consumed_samples=0, micro_batch_size=2,
    data_parallel_rank=0, data_parallel_size=1, data_sharding=False)
loader = BatchLoader(numbered_dataset(20), sampler, threads=2)
next(loader)
print("read")
{ending}
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "read\n", done.stderr
    assert ("KeyboardInterrupt" in done.stderr) == ("KeyboardInterrupt" in ending)
    if "KeyboardInterrupt" not in ending:
        assert done.stderr == ""
        assert done.returncode == 0


def test_a_pickled_loader_goes_on_from_the_same_position():
    with BatchLoader(numbered_dataset(20), cyclic(consumed=4), threads=2) as loader:
        for _ in range(12):
            next(loader)
        with pickle.loads(pickle.dumps(loader)) as copy:
            assert copy.consumed_samples == loader.consumed_samples
            for _ in range(3):
                assert first_tokens(next(copy)) == first_tokens(next(loader))


def take_three(loader, answer):
    answer.send([first_tokens(next(loader)) for _ in range(3)])
    loader.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_running_loader_goes_on_in_another_process(method, prefetch):
    context = multiprocessing.get_context(method)
    loader = BatchLoader(numbered_dataset(40), cyclic(40), prefetch=prefetch)
    next(loader)
    here, there = context.Pipe()
    child = context.Process(target=take_three, args=(loader, there))
    child.start()
    there.close()
    assert here.recv() == [first_tokens(next(loader)) for _ in range(3)]
    child.join(60)
    assert child.exitcode == 0
    here.close()
    loader.close()


def test_a_state_of_another_dataset_is_refused_and_the_position_stays():
    with (
        BatchLoader(numbered_dataset(20, name="a"), sequential()) as one,
        BatchLoader(numbered_dataset(20, name="b"), sequential()) as other,
    ):
        next(other)
        with pytest.raises(
            StateMismatchError, match='name: the state has "a", this loader has "b"'
        ):
            other.load_state_dict(one.state_dict())
        assert first_tokens(next(other)) == [2, 3]


def test_a_state_of_another_order_is_refused():
    with (
        BatchLoader(numbered_dataset(24), sequential(24)) as one,
        BatchLoader(numbered_dataset(24), cyclic(24)) as other,
    ):
        with pytest.raises(StateMismatchError, match=r'order\.order: the state has "sequential"'):
            other.load_state_dict(one.state_dict())
        sharded = BatchLoader(
            numbered_dataset(24), dataclasses.replace(other.sampler, data_sharding=True)
        )
        with pytest.raises(StateMismatchError, match=r"order\.shards: the state has \(absent\)"):
            sharded.load_state_dict(other.state_dict())


def test_a_position_the_sampler_cannot_take_is_refused_and_the_position_stays():
    with BatchLoader(numbered_dataset(20), sequential()) as loader:
        next(loader)
        with pytest.raises(ValueError, match="consumed_samples"):
            loader.load_state_dict({**loader.state_dict(), "consumed_samples": 22})
        assert first_tokens(next(loader)) == [2, 3]


def test_under_grains_names():
    with BatchLoader(numbered_dataset(20), sequential()) as loader:
        next(loader)
        state = loader.get_state()
        assert state == loader.state_dict()
        after = first_tokens(next(loader))
        loader.set_state(state)
        assert first_tokens(next(loader)) == after


def test_several_validation_sets_have_a_position_each():
    loaders = [BatchLoader(numbered_dataset(20, name=f"valid {i}"), sequential()) for i in range(2)]
    for _ in range(3):
        next(loaders[0])
    next(loaders[1])
    states = [loader.state_dict() for loader in loaders]
    expected = [first_tokens(next(loader)) for loader in loaders]
    for loader in loaders:
        loader.close()
    again = [BatchLoader(numbered_dataset(20, name=f"valid {i}"), sequential()) for i in range(2)]
    for loader, state in zip(again, states, strict=True):
        loader.load_state_dict(state)
    assert [first_tokens(next(loader)) for loader in again] == expected == [[6, 7], [2, 3]]
    for loader in again:
        loader.close()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"prefetch": -1}, "prefetch is -1, expected 0"),
        ({"threads": 0}, "threads is 0, expected 1 or more"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(ValueError, match=match):
        BatchLoader(numbered_dataset(20), sequential(), **options)
