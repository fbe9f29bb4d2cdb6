"""Several ranks as threads: who goes first, and what the others hear."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from coredata.datasets.ranks import (
    RankFailedError,
    RankLostError,
    Ranks,
    SingleProcess,
    build_in_turn,
)
from coredata.datasets.ranks_pipes import connect_ranks


class Diary:
    """What the ranks did, in order."""

    def __init__(self):
        self.entries = []
        self._lock = threading.Lock()

    def write(self, entry):
        with self._lock:
            self.entries.append(entry)


def run(ranks, cache, build):
    """Every rank in its own thread; what each returned or raised."""

    def one(member):
        try:
            return build_in_turn(member, cache, lambda: build(member.rank))
        except Exception as error:
            member.close()
            return error

    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(one, ranks))


def first_of(ranks, cache):
    """Which ranks build before any other begins."""
    diary = Diary()
    meeting = threading.Barrier(sum(member.builds for member in ranks), timeout=0.3)

    def build(rank):
        diary.write(rank)
        try:
            meeting.wait()  # those who build together meet, until one waits in vain
        except threading.BrokenBarrierError:
            diary.write("all")
        return rank

    results = run(ranks, cache, build)
    assert results == [member.rank if member.builds else None for member in ranks]
    before = diary.entries.index("all") if "all" in diary.entries else len(diary.entries)
    return set(diary.entries[:before])


def test_gather_keeps_the_order_of_ranks():
    ranks = connect_ranks(5)
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(lambda member: member.all_gather(f"from {member.rank}"), ranks))
    assert found == [[f"from {rank}" for rank in range(5)]] * 5


def test_single_process():
    alone = SingleProcess()
    assert isinstance(alone, Ranks)
    assert alone.all_gather("x") == ["x"]
    assert build_in_turn(alone, "shared", lambda: 7) == 7
    assert build_in_turn(SingleProcess(builds=False), "shared", lambda: 7) is None
    with pytest.raises(KeyError, match="mine"):
        build_in_turn(alone, "none", lambda: {}["mine"])


@pytest.mark.parametrize(
    ("cache", "builds", "first"),
    [
        ("shared", [True] * 4, {0}),
        ("shared", [False, False, True, True], {2}),
        ("node", [True] * 4, {0, 2}),
        ("node", [False, True, False, True], {1, 3}),
        ("none", [True] * 4, {0, 1, 2, 3}),
        ("none", [True, False, True, False], {0, 2}),
        ("shared", [False] * 4, set()),
    ],
)
def test_who_goes_first(cache, builds, first):
    ranks = connect_ranks(4, node_ranks=[0, 0, 1, 1], builds=builds, timeout=20)
    if not first:
        assert run(ranks, cache, str) == [None] * 4
        return
    assert first_of(ranks, cache) == first


@pytest.mark.parametrize("cache", ["shared", "node", "none"])
@pytest.mark.parametrize("failing", [0, 1, 3])
def test_a_rank_that_raises_fails_all(cache, failing):
    ranks = connect_ranks(4, node_ranks=[0, 0, 1, 1], timeout=20)

    def build(rank):
        if rank == failing:
            raise ValueError("no tokens here")
        return rank

    results = run(ranks, cache, build)
    assert isinstance(results[failing], ValueError)
    for rank, result in enumerate(results):
        if rank != failing:
            assert isinstance(result, RankFailedError)
            assert f"rank {failing} of 4 failed" in str(result)
            assert "ValueError: no tokens here" in str(result)


@pytest.mark.parametrize("lost", [0, 2])
def test_a_rank_that_hangs_up_is_noticed(lost):
    ranks = connect_ranks(3, timeout=20)  # but it is the closed pipe that is noticed

    def one(member):
        if member.rank == lost:
            member.close()
            return None
        with pytest.raises(RankLostError, match=f"rank {lost} has ended before all ranks were"):
            build_in_turn(member, "shared", lambda: 1)
        return member.rank

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(one, ranks))
    assert found == [None if rank == lost else rank for rank in range(3)]


@pytest.mark.parametrize("silent", [0, 2])
def test_a_rank_that_does_not_answer_in_time(silent):
    ranks = connect_ranks(3, timeout=0.2)
    with ThreadPoolExecutor(2) as pool:
        others = [member for member in ranks if member.rank != silent]
        calls = [pool.submit(member.all_gather, "here") for member in others]
        for call in calls:
            with pytest.raises(RankLostError, match=rf"rank {silent} within 0\.2 s; .* timeout"):
                call.result(timeout=10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"world_size": 0}, "a group of 0 ranks; give 1 or more"),
        ({"world_size": 2, "node_ranks": [0]}, "node_ranks has 1 values for 2 ranks"),
        ({"world_size": 2, "builds": [True] * 3}, "builds has 3 values for 2 ranks"),
    ],
)
def test_refused_groups(arguments, message):
    with pytest.raises(ValueError, match=message):
        connect_ranks(**arguments)
