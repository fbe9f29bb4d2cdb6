"""`Ranks` over jax.distributed: what the dataset builder, and the check of plans, talk through."""

from dataclasses import dataclass

import jax
import numpy as np
from jax.experimental import multihost_utils

from coredata.datasets.ranks import RankLostError

_SMALLEST = 64


@dataclass(frozen=True)
class JaxRanks:
    """The processes of a JAX program, as `coredata.datasets.ranks.Ranks`.

    Make it with `from_distributed`, after `jax.distributed.initialize`.
    """

    rank: int
    world_size: int
    node_rank: int
    builds: bool = True

    @classmethod
    def from_distributed(cls, *, processes_per_node: int = 1, builds: bool = True) -> "JaxRanks":
        """This process among those of the program.

        Args:
            processes_per_node: processes on one machine, numbered one after the other. It matters
                for index caches that only one machine sees.
            builds: whether this process builds datasets.

        Raises:
            ValueError: `processes_per_node` does not divide the number of processes.
        """
        rank, world_size = jax.process_index(), jax.process_count()
        if processes_per_node < 1 or world_size % processes_per_node:
            raise ValueError(
                f"processes_per_node: {world_size} processes are not whole machines of "
                f"{processes_per_node}. 1 always works"
            )
        return cls(rank, world_size, rank // processes_per_node, builds)

    def all_gather(self, message: str) -> list[str]:
        """Every process's message, in order; see `Ranks.all_gather`.

        It is a computation on the devices, so all processes must call it between the same steps.

        Raises:
            RankLostError: a process has ended.
        """
        if self.world_size == 1:
            return [message]
        data = np.frombuffer(message.encode(), np.uint8)
        lengths = _gather(np.array([len(data)], np.int32)).reshape(-1)
        # Few different sizes, as each is compiled once.
        size = max(_SMALLEST, 1 << (int(lengths.max()) - 1).bit_length())
        padded = np.zeros(size, np.uint8)
        padded[: len(data)] = data
        rows = _gather(padded)
        return [row[:length].tobytes().decode() for row, length in zip(rows, lengths, strict=True)]


def _gather(array: np.ndarray) -> np.ndarray:
    """The arrays of all processes, stacked.

    Raises:
        RankLostError: a process has ended.
    """
    try:
        return np.asarray(multihost_utils.process_allgather(array))
    except jax.errors.JaxRuntimeError as error:
        raise RankLostError(
            f"the processes of this JAX program could not exchange messages: {error}"
        ) from error
