"""Small datasets whose batches tell where they come from."""

import multiprocessing
import os
from contextlib import suppress

import numpy as np
import pytest
import torch
import torch.distributed as dist

from coredata.testing import ArrayDataset, numbered_dataset
from coredata.testing.golden_gpt import golden_gpt_dataset
from coredata.testing.golden_vectors import golden_case


@pytest.fixture(scope="session")
def numbers():
    """97 samples of 4 tokens; token i of sample k is 4 k + i."""
    return numbered_dataset(97)


@pytest.fixture(scope="session")
def gpt():
    """A real dataset of 141 samples."""
    return golden_gpt_dataset(golden_case("gpt", "multi_epoch_separate"))


class Ragged:
    """Sample k has k % 5 + 1 tokens, all of them k + 1."""

    def __init__(self, samples=20):
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        number = 0 if index is None else index
        length = number % 5 + 1
        return {
            "tokens": np.full(length, number + 1, np.int64),
            "loss_mask": np.full(length, index is not None, np.float32),
            "original_seq_len": np.array([length], np.int32),
        }

    def __getitems__(self, indices):
        return [self[index] for index in indices]

    def get_batch(self, indices):
        raise ValueError("samples of different lengths")

    def fingerprint(self):
        return {"name": "ragged", "samples": self.samples}


@pytest.fixture
def ragged():
    return Ragged()


@pytest.fixture
def broken(numbers):
    """Reading sample 8 fails, once the attribute `works` is False."""

    class Broken:
        works = False

        def __len__(self):
            return len(numbers)

        def __getitem__(self, index):
            return numbers[index]

        def __getitems__(self, indices):
            return numbers.__getitems__(indices)

        def get_batch(self, indices):
            if 8 in indices and not self.works:
                raise OSError("the disk is gone")
            return numbers.get_batch(indices)

        def fingerprint(self):
            return numbers.fingerprint()

    return Broken()


@pytest.fixture
def other_numbers():
    return ArrayDataset({"tokens": np.zeros((97, 4), np.int64)}, "other")


@pytest.fixture
def run_ranks(tmp_path):
    """Run `function(rank, *args)` in that many real processes joined by gloo; their results.

    A process that raises gives its exception. One that ends otherwise gives its exit code.
    """

    def run(function, world_size, *args, timeout=60):
        context = multiprocessing.get_context("fork")
        (tmp_path / "meeting").unlink(missing_ok=True)
        pipes = [context.Pipe(duplex=False) for _ in range(world_size)]
        children = [
            context.Process(
                target=_child,
                args=(function, rank, world_size, f"file://{tmp_path}/meeting", pipes, args),
            )
            for rank in range(world_size)
        ]
        for child in children:
            child.start()
        for _, theirs in pipes:
            theirs.close()
        try:
            both = zip(pipes, children, strict=True)
            return [_result(ours, child, timeout) for (ours, _), child in both]
        finally:
            for child in children:
                child.kill()
                child.join()

    return run


def _result(pipe, child, timeout):
    if not pipe.poll(timeout):
        raise TimeoutError(f"{child.name} gave no result within {timeout} s")
    try:
        return pipe.recv()
    except EOFError:
        child.join()
        return child.exitcode


def _child(function, rank, world_size, meeting, pipes, args):
    for number, (ours, theirs) in enumerate(pipes):
        ours.close()
        if number != rank:
            theirs.close()
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world_size)
    try:
        result = function(rank, *args)
    except Exception as error:
        result = error
    pipes[rank][1].send(result)
    with suppress(RuntimeError):  # The others may have failed, or ended.
        dist.barrier()
    os._exit(0)
