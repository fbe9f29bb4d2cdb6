"""Shards handed to an executor, their results handed back in input order."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait

from coredata.preprocess.plan import Shard
from coredata.preprocess.work import ShardResult

_LOOK_EVERY = 0.5


def results_in_order(
    shards: Sequence[Shard],
    submit: Callable[[Shard], "Future[ShardResult]"],
    *,
    window: int,
    stop_after: Callable[[int], None],
    look: Callable[[], None],
) -> Iterator[tuple[Shard, "Future[ShardResult]"]]:
    """Run shards and yield their futures, each done, in the order of `shards`.

    After a shard that failed or gave up nothing later is started, and what runs is told to stop,
    while earlier shards are finished: so the first failure in input order is the one that comes
    out, however many workers there are.

    Args:
        shards: what to do.
        submit: starts a shard.
        window: how many shards are submitted and not done at any time.
        stop_after: called with the index of a shard after which none is needed.
        look: called now and then while waiting.

    Raises:
        BrokenExecutor: a worker died.
    """
    waiting = deque(shards)
    running: dict[Future[ShardResult], Shard] = {}
    done: dict[int, Future[ShardResult]] = {}
    order = deque(shards)
    while order:
        while waiting and len(running) < window:
            shard = waiting.popleft()
            running[submit(shard)] = shard
            look()
        finished, _ = wait(running, timeout=_LOOK_EVERY, return_when=FIRST_COMPLETED)
        look()
        for future in finished:
            shard = running.pop(future)
            done[shard.index] = future
            if _ends_the_run(future):
                stop_after(shard.index)
                waiting = deque(other for other in waiting if other.index < shard.index)
                for other_future, other in running.items():
                    if other.index > shard.index:
                        other_future.cancel()
        while order and order[0].index in done:
            shard = order.popleft()
            yield shard, done.pop(shard.index)


def _ends_the_run(future: "Future[ShardResult]") -> bool:
    if future.cancelled():
        return True
    error = future.exception()
    if isinstance(error, BrokenExecutor):
        raise error
    return error is not None or not future.result().complete
