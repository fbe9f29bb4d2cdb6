"""`Ranks` from torch.distributed: who builds datasets together, and in which order."""

import os
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, final

import torch.distributed as dist

from coredata.datasets.ranks import RankLostError


@final
@dataclass(frozen=True)
class TorchRanks:
    """One process of a gloo group. Made by `torch_ranks`; meets `coredata.datasets.ranks.Ranks`."""

    rank: int
    world_size: int
    node_rank: int
    builds: bool
    group: Any
    timeout: timedelta

    def all_gather(self, message: str) -> list[str]:
        """Every rank's message; see `Ranks.all_gather`.

        Raises:
            RankLostError: a rank has ended, or did not answer in time; rank 0 is told which.
        """
        gathered: list[Any] = [None] * self.world_size
        try:
            dist.monitored_barrier(self.group, self.timeout, wait_all_ranks=True)
            dist.all_gather_object(gathered, message, self.group)
        except RuntimeError as error:
            raise RankLostError(
                f"rank {self.rank} of {self.world_size} waited for the others, and one has ended "
                f"or did not answer within {self.timeout.total_seconds():g} s; see its own output "
                "for the reason, or give torch_ranks a longer timeout if it was still building. "
                f"torch.distributed says: {str(error).strip()}"
            ) from error
        return gathered


def torch_ranks(
    *,
    group: Any = None,
    timeout: float | int = 1800,
    builds: bool = True,
    node_rank: int | None = None,
) -> TorchRanks:
    """This process among those of torch.distributed. All of them must call it.

    A gloo group of its own carries the messages, whatever the training uses: they go between
    CPUs, with their own timeout.

    Args:
        group: a gloo group to use instead of making one of all processes.
        timeout: seconds that a rank waits for another's message. Ranks wait while others build, so
            it must be longer than a build.
        builds: whether this process builds datasets.
        node_rank: the number of its machine, for caches that are local to machines. By default
            machines are told apart by their host names.

    Raises:
        RuntimeError: torch.distributed is not initialised.
        ValueError: no timeout.
        RankLostError: a process has ended, or did not call this in time.
    """
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(
            "torch.distributed is not initialised; call torch.distributed.init_process_group "
            "first, or use coredata.datasets.ranks.SingleProcess for a process by itself"
        )
    if timeout <= 0:
        raise ValueError(f"timeout is {timeout} s, expected more than 0, such as 1800")
    limit = timedelta(seconds=timeout)
    if group is None:
        group = dist.new_group(backend="gloo", timeout=limit)
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if node_rank is None:
        hosts = TorchRanks(rank, size, 0, builds, group, limit).all_gather(_host())
        node_rank = list(dict.fromkeys(hosts)).index(hosts[rank])
    return TorchRanks(rank, size, node_rank, builds, group, limit)


def _host() -> str:
    """What tells machines apart: torchrun's number of a machine and its name."""
    return f"{os.environ.get('GROUP_RANK', '')} {socket.gethostname()}"
