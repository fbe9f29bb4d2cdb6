"""Ranks joined by pipes: several processes (or threads) of one machine, without a framework."""

import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from coredata.datasets.ranks import RankLostError

_GOODBYE = "gone"
_MESSAGE = "message"
_ALL = "all"


class PipeRanks:
    """One of several ranks whose messages go through rank 0.

    Made by `connect_ranks`, then sent to a process: as an argument of a `multiprocessing.Process`
    of the spawn or forkserver method. (A forked child inherits every rank's pipes, so that the
    end of a rank goes unnoticed until the timeout.) Whoever made the ranks closes its own copies
    once the processes have started.

    A rank that ends, killed or not, is noticed at once by those waiting for it.
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        node_rank: int,
        builds: bool,
        peers: Sequence[Connection],
        timeout: float | None,
    ) -> None:
        self.rank = rank
        self.world_size = world_size
        self.node_rank = node_rank
        self.builds = builds
        self._peers = list(peers)
        self._timeout = timeout

    def all_gather(self, message: str) -> list[str]:
        """See `Ranks.all_gather`."""
        if self.rank == 0:
            return self._collect(message)
        hub = self._peers[0]
        with suppress(OSError):  # Rank 0 is gone, but its last word may wait to be read.
            hub.send((_MESSAGE, message))
        # Half as long again as rank 0 itself waits, so that its word on who is silent comes first.
        if not hub.poll(None if self._timeout is None else 1.5 * self._timeout):
            raise RankLostError(self._silence([0]))
        kind, content = _receive(hub, 0)
        if kind == _GOODBYE:
            raise RankLostError(content)
        return content

    def close(self) -> None:
        """Hang up: the others see this rank as gone."""
        for peer in self._peers:
            peer.close()

    def _collect(self, message: str) -> list[str]:
        """Rank 0: take every message, and give all of them to everyone."""
        messages = {0: message}
        waiting: dict[Any, int] = {peer: rank for rank, peer in enumerate(self._peers, start=1)}
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while waiting:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            ready = wait(list(waiting), left)
            if not ready:
                self._dismiss(self._silence(sorted(waiting.values())))
            for peer in ready:
                rank = waiting.pop(peer)
                try:
                    _, messages[rank] = _receive(peer, rank)
                except RankLostError as error:
                    self._dismiss(str(error))
        gathered = [messages[rank] for rank in range(self.world_size)]
        for rank, peer in enumerate(self._peers, start=1):
            try:
                _send(peer, (_ALL, gathered), rank)
            except RankLostError as error:
                self._dismiss(str(error))
        return gathered

    def _dismiss(self, reason: str) -> NoReturn:
        """Rank 0: tell those who are left why, and give up."""
        for peer in self._peers:
            with suppress(OSError):
                peer.send((_GOODBYE, reason))
        raise RankLostError(reason)

    def _silence(self, ranks: list[int]) -> str:
        names = ", ".join(map(str, ranks))
        return (
            f"no answer from rank {names} within {self._timeout} s; see what it is doing, or give"
            " connect_ranks a longer timeout (None waits until it ends)"
        )


def connect_ranks(
    world_size: int,
    *,
    node_ranks: Sequence[int] | None = None,
    builds: Sequence[bool] | None = None,
    timeout: float | int | None = None,
) -> list[PipeRanks]:
    """The ranks of a new group, joined by pipes.

    Args:
        world_size: how many.
        node_ranks: the machine of each, for caches that are local to machines; one by default.
        builds: which of them build datasets; all by default.
        timeout: seconds that a rank waits for another's message; None waits until it ends. As
            ranks wait while others build, it must be longer than a build.

    Raises:
        ValueError: no ranks, or a list that is not of that length.
    """
    if world_size < 1:
        raise ValueError(f"a group of {world_size} ranks; give 1 or more")
    for name, values in (("node_ranks", node_ranks), ("builds", builds)):
        if values is not None and len(values) != world_size:
            raise ValueError(
                f"{name} has {len(values)} values for {world_size} ranks; give one each"
            )
    pipes = [Pipe() for _ in range(world_size - 1)]
    ends = [[hub for hub, _ in pipes], *([spoke] for _, spoke in pipes)]
    return [
        PipeRanks(
            rank,
            world_size,
            0 if node_ranks is None else node_ranks[rank],
            True if builds is None else builds[rank],
            ends[rank],
            None if timeout is None else float(timeout),
        )
        for rank in range(world_size)
    ]


def _send(peer: Connection, content: Any, rank: int) -> None:
    try:
        peer.send(content)
    except OSError as error:
        raise RankLostError(_gone(rank)) from error


def _receive(peer: Any, rank: int) -> tuple[str, Any]:
    try:
        return peer.recv()
    except (EOFError, OSError) as error:
        raise RankLostError(_gone(rank)) from error


def _gone(rank: int) -> str:
    return f"rank {rank} has ended before all ranks were done; see its own output for the reason"
