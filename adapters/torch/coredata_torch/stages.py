"""What the middle stages of a pipeline need to know of packed microbatches."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from coredata.varlen import TokenCounts
from coredata_torch.packing import PackedStep
from coredata_torch.peers import PeerFailedError
from coredata_torch.tensors import Tensors

_BOUNDS = ("cu_seqlens", "cu_seqlens_padded")


@dataclass(frozen=True)
class PackedShapes:
    """Boundaries of microbatches without their tokens.

    Attributes:
        microbatches: each with `cu_seqlens`, `cu_seqlens_padded` and `max_seqlen`, int32.
        counts: see `PackedStep`.
    """

    microbatches: list[Tensors]
    counts: TokenCounts

    @classmethod
    def of(cls, step: PackedStep) -> "PackedShapes":
        """Those of a step."""
        names = (*_BOUNDS, "max_seqlen")
        return cls([{n: pack[n] for n in names} for pack in step.microbatches], step.counts)

    def words(self) -> list[int]:
        """As 64-bit integers; the sum of squares, which may need more, is two of them."""
        high, low = divmod(self.counts.squared, 2**62)
        words = [self.counts.tokens, high, low, len(self.microbatches)]
        for pack in self.microbatches:
            words += [int(pack["max_seqlen"]), len(pack["cu_seqlens"])]
            words += [value for name in _BOUNDS for value in pack[name].tolist()]
        return words

    @classmethod
    def from_words(cls, words: list[int]) -> "PackedShapes":
        """Back from integers."""
        rest = iter(words)
        counts = TokenCounts(next(rest), next(rest) * 2**62 + next(rest))
        packs = []
        for _ in range(next(rest)):
            longest, size = next(rest), next(rest)
            pack = {n: torch.tensor([next(rest) for _ in range(size)]).int() for n in _BOUNDS}
            packs.append({**pack, "max_seqlen": torch.tensor(longest, dtype=torch.int32)})
        return cls(packs, counts)


def share_shapes(
    step: PackedStep | None, group: Any = None, *, device: torch.device | str = "cpu"
) -> PackedShapes:
    """Send the boundaries of a step from rank 0 of a pipeline group to all of it.

    Args:
        step: on rank 0, the step; elsewhere None.
        group: the pipeline group; None for all processes.
        device: where messages travel: a GPU for an NCCL group.

    Raises:
        ValueError: on rank 0: it has no step.
        PeerFailedError: on the others, then.
    """
    source = 0 if group is None else dist.get_global_rank(group, 0)
    words = [] if step is None else PackedShapes.of(step).words()
    size = torch.tensor([len(words)], dtype=torch.int64, device=device)
    dist.broadcast(size, source, group=group)
    if not int(size):
        if dist.get_rank(group) == 0:
            raise ValueError("step is None on rank 0 of the group, which sends it; give it there")
        raise PeerFailedError("rank 0 of the pipeline group has no step to send; see its output")
    words = words if dist.get_rank(group) == 0 else [0] * int(size)
    message = torch.tensor(words, dtype=torch.int64, device=device)
    dist.broadcast(message, source, group=group)
    return PackedShapes.from_words(message.tolist())
