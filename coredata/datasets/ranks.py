"""The processes that build datasets together, and the order in which they do it.

Datasets never communicate by themselves: whoever needs agreement between processes is given a
`Ranks`. The adapters make one from torch.distributed or jax.distributed; `ranks_pipes` makes some
from plain pipes; alone, a process is `SingleProcess`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")

CacheScope = Literal["shared", "node", "none"]
"""Who sees an index cache: all ranks, those of one node, or (no cache) nobody."""


@runtime_checkable
class Ranks(Protocol):
    """One process among several."""

    @property
    def rank(self) -> int:
        """This process's number, from 0."""
        ...

    @property
    def world_size(self) -> int:
        """Number of processes."""
        ...

    @property
    def node_rank(self) -> int:
        """The number of the machine it runs on."""
        ...

    @property
    def builds(self) -> bool:
        """Whether it builds datasets at all."""
        ...

    def all_gather(self, message: str) -> list[str]:
        """Every rank's message, in the order of ranks. Returns when all ranks have called it.

        Raises:
            RankLostError: a rank has ended, or did not answer in time.
        """
        ...


@dataclass(frozen=True)
class SingleProcess:
    """The only process."""

    rank: int = 0
    world_size: int = 1
    node_rank: int = 0
    builds: bool = True

    def all_gather(self, message: str) -> list[str]:
        """The message itself."""
        return [message]


class RankFailedError(RuntimeError):
    """Another rank raised an exception. The text says which rank, and what it raised."""


class RankLostError(ConnectionError):
    """Another rank has ended or does not answer. The text says which."""


def build_in_turn(ranks: Ranks, cache: CacheScope, build: Callable[[], T]) -> T | None:
    """Let every rank that builds call `build`, those first that fill caches for others.

    With a shared cache the lowest of the ranks that build goes first; with caches local to nodes,
    the lowest of each node. The others follow when these are done, and find the caches full.
    Without a cache all build at once. All ranks must call this, also those that do not build.

    Returns:
        What `build` gave; None on a rank that does not build.

    Raises:
        RankFailedError: another rank failed; a rank that fails raises its own exception.
        RankLostError: another rank ended, or did not answer in time.
    """
    places = _gather_places(ranks)
    first = _first_ranks(places, cache)
    result: T | None = None
    if first:
        with _Turn(ranks):
            if ranks.rank in first:
                result = build()
    with _Turn(ranks):
        if ranks.builds and ranks.rank not in first:
            result = build()
    return result


def _gather_places(ranks: Ranks) -> list[tuple[int, bool]]:
    """The node of every rank, and whether it builds."""
    messages = ranks.all_gather(json.dumps([ranks.node_rank, ranks.builds]))
    return [(int(node), bool(builds)) for node, builds in map(json.loads, messages)]


def _first_ranks(places: list[tuple[int, bool]], cache: CacheScope) -> set[int]:
    if cache == "none":
        return set()
    first: dict[int, int] = {}
    for rank, (node, builds) in enumerate(places):
        if builds:
            first.setdefault(node if cache == "node" else 0, rank)
    return set(first.values())


class _Turn:
    """What a rank does between two points where all ranks meet.

    At the end every rank hears whether another failed, and then fails too.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):
            return  # Interrupted: this process ends, which the others notice.
        failure = "" if kind is None else f"{kind.__name__}: {error}"
        failures = self._ranks.all_gather(failure)
        if kind is not None:
            return
        for rank, text in enumerate(failures):
            if text:
                raise RankFailedError(
                    f"rank {rank} of {len(failures)} failed while building datasets: {text}"
                )
