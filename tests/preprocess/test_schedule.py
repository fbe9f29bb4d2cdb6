"""The order of results, against futures that the test completes itself."""

from concurrent.futures import BrokenExecutor, Future

import pytest

from coredata.preprocess.plan import Shard
from coredata.preprocess.report import RowCounts
from coredata.preprocess.schedule import results_in_order
from coredata.preprocess.work import ShardResult


class Script:
    """Completes one submitted shard at each look, in a given order, once enough are submitted."""

    def __init__(self, order, failing=(), incomplete=(), enough=1):
        self.futures = {}
        self.order = list(order)
        self.failing = failing
        self.incomplete = incomplete
        self.enough = enough
        self.stops = []
        self.most_open = 0

    def submit(self, shard):
        self.futures[shard.index] = Future()
        return self.futures[shard.index]

    def look(self):
        opened = [index for index, future in self.futures.items() if not future.done()]
        self.most_open = max(self.most_open, len(opened))
        if len(self.futures) < self.enough:
            return
        for index in self.order:
            future = self.futures.get(index)
            if future is None or future.done():
                continue
            if index in self.failing:
                future.set_exception(self.failing[index])
            else:
                complete = index not in self.incomplete
                future.set_result(ShardResult(index, complete, RowCounts(), {}))
            return

    def run(self, count, window):
        shards = [Shard(i, 0, "a", i, i + 1, 0, 1) for i in range(count)]
        results = results_in_order(
            shards, self.submit, window=window, stop_after=self.stops.append, look=self.look
        )
        return [(shard.index, future) for shard, future in results]


def indices(found):
    return [index for index, _ in found]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
@pytest.mark.parametrize("window", [1, 2, 5, 9])
def test_results_come_in_order(order, window):
    script = Script(order)
    assert indices(script.run(5, window)) == [0, 1, 2, 3, 4]
    assert script.most_open <= window
    assert script.stops == []


def test_no_shards():
    assert Script([]).run(0, 3) == []


def test_earlier_shards_are_finished_after_a_failure_and_later_ones_are_not_started():
    script = Script([2, 3, 0, 1], failing={2: ValueError("two"), 0: ValueError("zero")}, enough=4)
    shards = [Shard(i, 0, "a", i, i + 1, 0, 1) for i in range(9)]
    results = results_in_order(
        shards, script.submit, window=4, stop_after=script.stops.append, look=script.look
    )
    shard, future = next(results)
    assert shard.index == 0
    assert str(future.exception()) == "zero"
    assert script.stops == [2, 0]
    assert max(script.futures) == 3


def test_a_shard_that_gave_up_stops_the_later_ones():
    script = Script([1, 0], incomplete=[1], enough=3)
    shards = [Shard(i, 0, "a", i, i + 1, 0, 1) for i in range(9)]
    results = results_in_order(
        shards, script.submit, window=3, stop_after=script.stops.append, look=script.look
    )
    assert [next(results)[0].index, next(results)[0].index] == [0, 1]
    assert script.stops == [1]
    assert max(script.futures) == 2
    assert script.futures[2].cancelled()


def test_a_broken_executor_is_raised_at_once():
    script = Script([2], failing={2: BrokenExecutor("gone")})
    with pytest.raises(BrokenExecutor, match="gone"):
        script.run(5, 5)
