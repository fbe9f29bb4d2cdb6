"""What ranks tell each other before they exchange data, so that none waits for one that failed."""

from collections.abc import Sequence
from typing import Any, final

import torch
import torch.distributed as dist

_READY, _FAILED = 0, -1


class PeerFailedError(RuntimeError):
    """Another rank could not do its part; the text says which."""


def gather(tensor: torch.Tensor, group: Any = None) -> list[torch.Tensor]:
    """The tensors of all ranks, which have one shape."""
    gathered = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, tensor, group=group)
    return gathered


def meet(words: Sequence[int], group: Any = None) -> list[list[int]]:
    """Some integers of every rank, as many of each.

    Raises:
        PeerFailedError: a rank failed before it came here (`FailureTold`).
    """
    found = [w.tolist() for w in gather(torch.tensor([_READY, *words], dtype=torch.int64), group)]
    for rank, (status, *_) in enumerate(found):
        if status == _FAILED:
            raise PeerFailedError(
                f"rank {rank} of the data-parallel group failed before samples were exchanged; see "
                "its own output for the reason"
            )
    return [own for _, *own in found]


@final
class FailureTold:
    """Tells the other ranks when this one fails inside the `with`: they are, or will be, in `meet`.

    Args:
        words: how many integers they meet with.
        group: the ranks.
    """

    def __init__(self, words: int, group: Any = None) -> None:
        self._words = words
        self._group = group

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is None or not issubclass(kind, Exception):
            return  # Interrupted: this process ends, which the others notice.
        message = torch.zeros(1 + self._words, dtype=torch.int64)
        message[0] = _FAILED
        gather(message, self._group)
