"""Ranks of real processes, joined by torch.distributed's gloo on loopback."""

import os
import time

import pytest
from coredata_torch import (
    LoaderConfig,
    PlanMismatchError,
    build_pretraining_data_loader,
    torch_ranks,
)

from coredata.datasets.ranks import RankFailedError, RankLostError, Ranks, build_in_turn

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


def _gather(rank):
    ranks = torch_ranks(builds=rank != 1, timeout=20)
    assert isinstance(ranks, Ranks)
    said = [ranks.all_gather(f"{rank} in round {i} ü") for i in range(3)]
    return ranks.rank, ranks.world_size, ranks.node_rank, ranks.builds, said


def test_every_message_reaches_every_rank(run_ranks):
    found = run_ranks(_gather, 3)
    said = [[f"{rank} in round {i} ü" for rank in range(3)] for i in range(3)]
    assert found == [(rank, 3, 0, rank != 1, said) for rank in range(3)]


def _build(rank, directory, failing):
    ranks = torch_ranks(builds=rank != 1, timeout=20)

    def build():
        if rank == failing:
            raise ValueError("a broken file")
        first = not (directory / "cache").exists()
        (directory / "cache").touch()
        return first

    return build_in_turn(ranks, "shared", build)


def test_one_rank_builds_first_and_others_find_its_cache(run_ranks, tmp_path):
    assert run_ranks(_build, 3, tmp_path, None) == [True, None, False]


@pytest.mark.parametrize("failing", [0, 2])
def test_a_failing_rank_is_heard_by_all(run_ranks, tmp_path, failing):
    found = run_ranks(_build, 3, tmp_path, failing)
    for rank, error in enumerate(found):
        if rank == failing:
            assert repr(error) == repr(ValueError("a broken file"))
        else:
            assert isinstance(error, RankFailedError)
            assert f"rank {failing} of 3 failed" in str(error)
            assert "ValueError: a broken file" in str(error)


def _silent(rank, ends):
    ranks = torch_ranks(timeout=0.8)
    ranks.all_gather("all here")
    if rank == 1:
        if ends:
            os._exit(3)
        time.sleep(3)
        return None
    return ranks.all_gather("where are you?")


@pytest.mark.parametrize("ends", [True, False])
def test_a_rank_that_ended_or_is_silent_is_lost(run_ranks, ends):
    found = run_ranks(_silent, 3, ends)
    assert found[1] == (3 if ends else None)
    for error in (found[0], found[2]):
        assert isinstance(error, RankLostError)
        assert "has ended or did not answer within 0.8 s" in str(error)
    if not ends:
        assert "Ranks 1 failed to pass monitoredBarrier" in str(found[0])


def _load(rank, numbers, other):
    dataset = other if rank == 2 else numbers
    config = LoaderConfig(2, rank, 3)
    ranks = torch_ranks(timeout=20)
    build_pretraining_data_loader(numbers, 0, config=config, ranks=ranks)
    return build_pretraining_data_loader(dataset, 0, config=config, ranks=ranks)


def test_processes_with_different_datasets_all_say_so(run_ranks, numbers, other_numbers):
    found = run_ranks(_load, 3, numbers, other_numbers)
    assert [type(error) for error in found] == [PlanMismatchError] * 3
    assert len({str(error) for error in found}) == 1
    assert "rank 2 of 3" in str(found[0])
    assert "name: rank 0 has 'numbers', rank 2 has 'other'" in str(found[0])


def test_without_torch_distributed():
    with pytest.raises(RuntimeError, match=r"call torch[.]distributed[.]init_process_group first"):
        torch_ranks()


def _bad_timeout(rank):
    return torch_ranks(timeout=0)


def test_a_timeout_of_nothing(run_ranks):
    assert "expected more than 0, such as 1800" in str(run_ranks(_bad_timeout, 1)[0])
