"""Ends, errors, donation, threads: everything but which rows go where."""

import threading
from itertools import islice

import jax
import numpy as np
import pytest
from coredata_jax import ShardedBatches
from meshes import Watched, as_numpy, mesh_of, numpy_batches

from coredata.sampling import BatchSizeRampUp
from coredata.testing import ArrayDataset, assert_resume_exact, assert_same_batch, numbered_dataset

DATA = mesh_of(data=4, model=2)


@pytest.fixture
def numbers():
    return numbered_dataset(44, 4)


@pytest.mark.parametrize(("drop_last", "batches"), [(True, 5), (False, 6)])
def test_the_last_batch_is_dropped_or_filled_with_rows_without_loss(numbers, drop_last, batches):
    with ShardedBatches(numbers, 8, DATA, drop_last=drop_last) as run:
        assert len(run) == batches
        got = list(run)
        assert run.consumed_samples == (40 if drop_last else 44)
        assert len(run) == 0
        assert next(run, None) is None
    assert len(got) == batches
    assert {array.shape for batch in got for array in batch.values()} == {(8, 4)}
    for batch, expected in zip(got, numpy_batches(numbers, 8, drop_last=drop_last), strict=True):
        assert_same_batch(as_numpy(batch), expected, "batch")
    losses = np.asarray(got[-1]["loss_mask"]).sum(axis=1)
    assert losses.tolist() == ([4.0] * 8 if drop_last else [4.0] * 4 + [0.0] * 4)


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("device_prefetch", [0, 1, 3])
def test_resume_is_exact_whatever_is_read_ahead(numbers, prefetch, device_prefetch):
    options = {"prefetch": prefetch, "device_prefetch": device_prefetch}
    assert_resume_exact(lambda: ShardedBatches(numbers, 8, DATA, **options), 6)


def test_a_step_may_donate_its_batch(numbers):
    """Also where several devices hold the same rows, and while later batches lie ready."""
    ruin = jax.jit(lambda batch: {k: v * 0 - 1 for k, v in batch.items()}, donate_argnums=0)
    expected = numpy_batches(numbers, 8)
    with ShardedBatches(numbers, 8, DATA, device_prefetch=2) as run:
        for step, batch in enumerate(run):
            assert_same_batch(as_numpy(batch), expected[step], f"step {step}")
            assert all((np.asarray(v) == -1).all() for v in ruin(batch).values())


@pytest.mark.parametrize(("mesh", "axes"), [(DATA, "data"), (mesh_of(model=8), ())])
def test_no_two_devices_share_memory(mesh, axes):
    wide = ArrayDataset({"tokens": np.arange(64 * 1024).reshape(64, 1024)})
    with ShardedBatches(wide, 64, mesh, axes) as run:
        shards = next(run)["tokens"].addressable_shards
    assert len({shard.data.unsafe_buffer_pointer() for shard in shards}) == 8


@pytest.mark.parametrize("device_prefetch", [0, 2])
def test_an_error_comes_when_its_batch_is_due_and_next_tries_again(numbers, device_prefetch):
    broken = Watched(numbers, broken=17)
    expected = numpy_batches(numbers, 8)
    with ShardedBatches(broken, 8, DATA, device_prefetch=device_prefetch) as run:
        for step in range(2):
            assert_same_batch(as_numpy(next(run)), expected[step], "before")
        with pytest.raises(OSError, match="on fire") as caught:
            next(run)
        assert "samples [16, 17" in caught.value.__notes__[0]
        assert run.consumed_samples == 16
        for step, batch in enumerate(run, start=2):
            assert_same_batch(as_numpy(batch), expected[step], "after")
        assert step == 4


def coredata_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("coredata")]


def test_threads_begin_with_the_first_batch_and_end_with_the_last_or_with_close(numbers):
    run = ShardedBatches(numbers, 8, DATA)
    assert coredata_threads() == []
    next(run)
    assert any("transfer" in name for name in coredata_threads())
    run.close()
    run.close()
    assert coredata_threads() == []
    assert run.closed
    assert run.state_dict()["consumed_samples"] == 8
    with ShardedBatches(numbers, 8, DATA) as run:
        list(run)
        assert coredata_threads() == []


def test_seek_and_rewind_drop_what_was_read_ahead(numbers):
    expected = numpy_batches(numbers, 8)
    with ShardedBatches(numbers, 8, DATA) as run:
        next(run)
        run.seek(24)
        assert_same_batch(as_numpy(next(run)), expected[3], "after seek")
        run.seek(0)
        assert_same_batch(as_numpy(next(run)), expected[0], "from the start")


def test_a_batch_size_that_grows(numbers):
    ramp = BatchSizeRampUp(4, 4, 16, 8)
    with ShardedBatches(numbers, ramp, DATA) as run:
        got = [as_numpy(batch) for batch in run]
    expected = numpy_batches(numbers, ramp)
    assert [len(batch["tokens"]) for batch in got] == [len(b["tokens"]) for b in expected]
    assert {len(batch["tokens"]) for batch in got} == {4, 8}
    for batch, wanted in zip(got, expected, strict=True):
        assert_same_batch(batch, wanted, "batch")


def test_it_feeds_a_jitted_step_without_a_copy(numbers):
    with ShardedBatches(numbers, 8, DATA) as run:
        total = jax.jit(lambda tokens: tokens.sum(), in_shardings=run.sharding)
        sums = [int(total(batch["tokens"])) for batch in islice(run, 2)]
    assert sums == [sum(range(32)), sum(range(32, 64))]


def test_storage_is_told_of_the_samples_to_come(numbers):
    class Hinted(Watched):
        def prefetch(self, indices):
            hints.append(indices.tolist())

    hints = []
    with ShardedBatches(Hinted(numbers), 8, DATA) as run:
        next(run)
    assert hints[:2] == [list(range(8)), list(range(8, 16))]
