"""Samples of different lengths between data-parallel ranks: who has what, and all-to-all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from coredata._typing import Int64
from coredata.varlen.microbatch import FIELDS
from coredata_torch.wire import DTYPES

_FAILED = -1


class PeerFailedError(RuntimeError):
    """Another rank could not give its samples; the text says which."""


@dataclass(frozen=True)
class Inventory:
    """The samples of all ranks, numbered in order of rank, then local order.

    Attributes:
        lengths: int64 (samples, 2): original and padded length of each.
        owners: the rank that holds each.
        dtypes: of each of the fields in `FIELDS`.
    """

    lengths: Int64[np.ndarray, "samples 2"]
    owners: Int64[np.ndarray, " samples"]
    dtypes: tuple[torch.dtype, ...]

    def held_by(self, rank: int) -> Int64[np.ndarray, " held"]:
        """The numbers of the samples of a rank."""
        return np.flatnonzero(self.owners == rank)


def tell_failure(group: Any = None) -> None:
    """In place of `take_inventory`: tell the other ranks that this one has no samples to give."""
    _gather(torch.full((1 + len(FIELDS),), _FAILED, dtype=torch.int64), group)


def take_inventory(samples: Sequence[Mapping[str, Any]], group: Any = None) -> Inventory:
    """Gather the lengths of all ranks' samples: two messages of 64-bit integers.

    Args:
        samples: those of this rank, each with `FIELDS`, `original_seq_len` and `padded_seq_len`.
        group: the data-parallel group; None for all processes.

    Raises:
        PeerFailedError: a rank called `tell_failure`.
        ValueError: no rank has a sample, or ranks differ in a field's dtype.
    """
    size = dist.get_world_size(group)
    header = torch.full((1 + len(FIELDS),), _FAILED, dtype=torch.int64)
    header[0] = len(samples)
    if samples:
        for place, field in enumerate(FIELDS, start=1):
            header[place] = DTYPES.index(_tensor(samples[0][field]).dtype)
    headers = _gather(header, group)
    counts = [int(found[0]) for found in headers]
    if _FAILED in counts:
        raise PeerFailedError(
            f"rank {counts.index(_FAILED)} of the data-parallel group could not give its samples; "
            "see its own output for the reason"
        )
    kinds = {tuple(found[1:].tolist()) for found in headers if found[0]}
    if len(kinds) != 1:
        raise ValueError(
            "no rank has a sample to pack; give a global batch of at least one for each rank"
            if not kinds
            else f"the dtypes of {', '.join(FIELDS)} differ between ranks; use one configuration"
        )
    most = max(counts)
    mine = torch.zeros(most, 2, dtype=torch.int64)
    for row, sample in zip(mine, samples, strict=False):
        row[0] = int(np.reshape(sample["original_seq_len"], -1)[0])
        row[1] = int(np.reshape(sample["padded_seq_len"], -1)[0])
    gathered = zip(_gather(mine, group), counts, strict=True)
    rows = [found[:count].numpy() for found, count in gathered]
    (codes,) = kinds
    return Inventory(
        np.concatenate(rows),
        np.repeat(np.arange(size), counts),
        tuple(DTYPES[code] for code in codes),
    )


def exchange(
    samples: Sequence[Mapping[str, Any]],
    inventory: Inventory,
    receivers: Int64[np.ndarray, " samples"],
    group: Any = None,
) -> dict[int, dict[str, Any]]:
    """Send every sample to the rank that shall have it: one all-to-all for each dtype.

    Args:
        samples: those of this rank.
        inventory: what all ranks have.
        receivers: the rank that shall have each sample of the inventory.
        group: the group of the inventory.

    Returns:
        The samples that this rank is to have, by number.
    """
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    held = inventory.held_by(rank)
    local = {int(number): sample for number, sample in zip(held, samples, strict=True)}
    wanted = np.flatnonzero(receivers == rank)
    going = [held[receivers[held] == other] for other in range(size)]
    coming = [wanted[inventory.owners[wanted] == other] for other in range(size)]
    padded = inventory.lengths[:, 1]
    received: dict[int, dict[str, Any]] = {int(number): {} for number in wanted}
    for dtype in dict.fromkeys(inventory.dtypes):
        fields = [f for f, d in zip(FIELDS, inventory.dtypes, strict=True) if d == dtype]
        each = len(fields) * dtype.itemsize
        parts = [_tensor(local[int(n)][f]) for numbers in going for n in numbers for f in fields]
        out = torch.cat([torch.empty(0, dtype=dtype), *parts]).view(torch.uint8)
        sizes_out = [int(padded[numbers].sum()) * each for numbers in going]
        sizes_in = [int(padded[numbers].sum()) * each for numbers in coming]
        data = torch.empty(sum(sizes_in), dtype=torch.uint8)
        dist.all_to_all_single(data, out, sizes_in, sizes_out, group=group)
        rest = data.view(dtype).numpy()
        for number in (int(n) for numbers in coming for n in numbers):
            for field in fields:
                received[number][field], rest = np.split(rest, [int(padded[number])])
    for number, sample in received.items():
        original, length = inventory.lengths[number]
        sample["original_seq_len"] = np.array([original], np.int32)
        sample["padded_seq_len"] = np.array([length], np.int32)
    return received


def _gather(tensor: torch.Tensor, group: Any) -> list[torch.Tensor]:
    gathered = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, tensor, group=group)
    return gathered


def _tensor(values: Any) -> torch.Tensor:
    array = np.ascontiguousarray(values)
    return torch.from_numpy(array if array.flags.writeable else array.copy())
