"""Tensor parallelism with real processes: rank 0 of each group reads, the others receive."""

import os
from itertools import islice

import numpy as np
import pytest
import torch
import torch.distributed as dist
from coredata_torch import (
    BroadcastIterator,
    PretrainingDataLoader,
    ReaderFailedError,
    as_tensors,
)
from coredata_torch.wire import (
    BATCH,
    DTYPES,
    FAILED,
    HEADER,
    Layout,
    pack_header,
    read_header,
)

from coredata.loading import BatchLoader
from coredata.sampling import MegatronPretrainingSampler
from coredata.testing import assert_same_batch

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


def sampler(dataset, rank, size):
    return MegatronPretrainingSampler(len(dataset), 0, 3, rank, size)


def _run(rank, dataset):
    """4 processes: data-parallel 2, tensor-parallel 2."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    reads = rank % 2 == 0
    loader = PretrainingDataLoader(dataset, sampler(dataset, rank // 2, 2)) if reads else None
    batches = BroadcastIterator(loader, groups[rank // 2])
    out = [{name: t.numpy() for name, t in batch.items()} for batch in islice(batches, 30)]
    return out, next(batches, "the end")


def test_all_ranks_of_a_group_have_the_readers_batches(run_ranks, gpt):
    for rank, (batches, end) in enumerate(run_ranks(_run, 4, gpt)):
        expected = list(BatchLoader(gpt, sampler(gpt, rank // 2, 2), prefetch=0))
        assert len(batches) == len(expected) == 23
        assert end == "the end"
        for step, (batch, numpy_batch) in enumerate(zip(batches, expected, strict=True)):
            assert_same_batch(batch, numpy_batch, f"rank {rank}, step {step}")


def _messages(rank, dataset):
    sent = []
    broadcast = dist.broadcast

    def counted(tensor, *args, **kwargs):
        sent.append((tensor.dtype, tensor.numel()))
        return broadcast(tensor, *args, **kwargs)

    loader = PretrainingDataLoader(dataset, sampler(dataset, 0, 1)) if rank == 0 else None
    dist.broadcast = counted
    next(BroadcastIterator(loader))
    return sent


def test_one_message_for_shapes_and_one_for_each_dtype(run_ranks, numbers):
    expected = [(torch.int64, HEADER), (torch.uint8, 3 * 3 * 4 * 8), (torch.uint8, 3 * 4 * 4)]
    assert run_ranks(_messages, 2, numbers) == [expected, expected]


def _fail(rank, dataset):
    loader = PretrainingDataLoader(dataset, sampler(dataset, 0, 1)) if rank == 0 else None
    batches = BroadcastIterator(loader)
    return [next(batches)["tokens"][0, 0].item() for _ in range(3)]


def test_a_failing_reader_is_heard(run_ranks, broken):
    reader, receiver = run_ranks(_fail, 2, broken)
    assert isinstance(reader, OSError)
    assert isinstance(receiver, ReaderFailedError)
    assert "rank 0 of the group failed while reading: OSError: the disk is gone" in str(receiver)


def _die(rank, dataset):
    loader = PretrainingDataLoader(dataset, sampler(dataset, 0, 1)) if rank == 0 else None
    batches = BroadcastIterator(loader)
    next(batches)
    if rank == 0:
        os._exit(3)
    return next(batches)


def test_a_reader_that_is_gone_ends_the_others(run_ranks, numbers):
    reader, receiver = run_ranks(_die, 2, numbers)
    assert reader == 3
    assert isinstance(receiver, RuntimeError)


def _nothing(rank):
    return BroadcastIterator(None)


def test_a_reader_without_batches(run_ranks):
    assert "batches is None on rank 0" in str(run_ranks(_nothing, 1)[0])


def test_any_layout_survives(numbers):
    batch: dict[str, torch.Tensor] = {
        f"{'x' * number}ü": torch.arange(2 * number).reshape(number, 2, 1).to(dtype)
        for number, dtype in enumerate(DTYPES)
        if dtype not in (torch.uint16, torch.uint32, torch.uint64)
    }
    batch["strided"] = torch.arange(12).reshape(3, 4).t()
    batch["scalar"] = torch.tensor(2.5)
    batch.update(as_tensors({"u16": np.arange(3, dtype=np.uint16)}))
    kind, words = read_header(pack_header(BATCH, Layout.of(batch).words()))
    layout = Layout.from_words(words)
    assert (kind, layout) == (BATCH, Layout.of(batch))
    flat = {dtype: layout.flatten(batch, dtype) for dtype in layout.dtypes()}
    assert all(len(data) == layout.bytes_of(dtype) for dtype, data in flat.items())
    again = layout.unflatten(flat)
    for name, tensor in batch.items():
        assert again[name].dtype == tensor.dtype
        assert torch.equal(again[name], tensor), name


def test_sizes_are_exact_beyond_32_bit_floats():
    shape = (2**24 + 1, 2**40 + 1)
    layout = Layout({"tokens": (torch.int64, shape)})
    _, words = read_header(pack_header(BATCH, layout.words()))
    assert Layout.from_words(words) == layout


def test_what_does_not_fit_a_header():
    assert read_header(pack_header(FAILED, "ü" * 9000)) == (FAILED, "ü" * (4 * (HEADER - 2)))
    wide = Layout({f"field {number}": (torch.int64, (1, 2)) for number in range(300)})
    with pytest.raises(ValueError, match="need 2001 integers, but one message holds 1022"):
        pack_header(BATCH, wide.words())
    with pytest.raises(ValueError, match=r"field a is torch\.complex64"):
        Layout.of({"a": torch.zeros(1, dtype=torch.complex64)}).words()
