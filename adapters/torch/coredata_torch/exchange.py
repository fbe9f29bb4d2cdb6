"""Samples of different lengths between data-parallel ranks: who has what, and all-to-all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from coredata._typing import Int64
from coredata.varlen.microbatch import FIELDS
from coredata_torch.agreement import PlanMismatchError
from coredata_torch.peers import FailureTold, gather, meet
from coredata_torch.wire import DTYPES

_LENGTHS = ("original_seq_len", "padded_seq_len")

HEADER = 2 + len(FIELDS)
"""Integers with which ranks meet: position, number of samples (-1 at the end), dtypes."""

_ENDED = -1


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


def take_inventory(
    samples: Sequence[Mapping[str, Any]], group: Any = None, *, position: int = 0
) -> Inventory:
    """Gather the lengths of all ranks' samples: two messages of 64-bit integers.

    Args:
        samples: those of this rank, each with `FIELDS`, `original_seq_len` and `padded_seq_len`.
        group: the data-parallel group; None for all processes.
        position: where this rank stands in the run; all must stand there.

    Raises:
        PeerFailedError: a rank failed before it came here.
        PlanMismatchError: on all ranks: they do not stand at the same place.
        ValueError: a sample whose fields do not fit together; no rank has a sample, or ranks
            differ in a field's dtype.
    """
    size = dist.get_world_size(group)
    with FailureTold(HEADER, group):
        dtypes, mine = _described(samples)
    headers = meet([position, len(samples), *dtypes], group)
    _check_in_step(headers)
    counts = [count for _, count, *_ in headers]
    kinds = {tuple(codes) for _, count, *codes in headers if count}
    if len(kinds) != 1:
        raise ValueError(
            "no rank has a sample to pack; give a global batch of at least one for each rank"
            if not kinds
            else f"the dtypes of {', '.join(FIELDS)} differ between ranks; use one configuration"
        )
    padded = torch.zeros(max(counts), 2, dtype=torch.int64)
    padded[: len(mine)] = mine
    gathered = zip(gather(padded, group), counts, strict=True)
    rows = [found[:count].numpy() for found, count in gathered]
    (codes,) = kinds
    return Inventory(
        np.concatenate(rows),
        np.repeat(np.arange(size), counts),
        tuple(DTYPES[code] for code in codes),
    )


def tell_end(position: int, group: Any = None) -> None:
    """In place of `take_inventory`: this rank's samples are at an end, as all must be.

    Raises:
        PeerFailedError: a rank failed.
        PlanMismatchError: on all ranks: one of them is not at its end.
    """
    _check_in_step(meet([position, _ENDED, *[0] * len(FIELDS)], group))


def _check_in_step(headers: Sequence[Sequence[int]]) -> None:
    """Refuse ranks of which one is ahead of another, or at its end before another."""
    places = [(position, count == _ENDED) for position, count, *_ in headers]
    for rank, place in enumerate(places):
        if place != places[0]:
            first, other = (
                f"at consumed_samples={position}{', its end' if ended else ''}"
                for position, ended in (places[0], place)
            )
            raise PlanMismatchError(
                f"rank {rank} of the data-parallel group is {other}, but rank 0 is {first}. Give "
                "all of them the same sampler, and load the same state on all"
            )


def _described(samples: Sequence[Mapping[str, Any]]) -> tuple[list[int], torch.Tensor]:
    """The dtypes of the fields, as places in `DTYPES`, and the lengths of each sample.

    Raises:
        ValueError: a sample without a field, of another length than it says, or of other dtypes.
    """
    lengths = torch.zeros(len(samples), 2, dtype=torch.int64)
    kinds: list[torch.dtype] = []
    for number, sample in enumerate(samples):
        missing = [name for name in (*FIELDS, *_LENGTHS) if name not in sample]
        if missing:
            raise ValueError(
                f"sample {number} of this rank has no {', '.join(missing)}, only "
                f"{', '.join(sample)}; packing needs {', '.join((*FIELDS, *_LENGTHS))}"
            )
        lengths[number] = torch.tensor([int(np.reshape(sample[n], -1)[0]) for n in _LENGTHS])
        found = {len(sample[field]) for field in FIELDS}
        if found != {int(lengths[number, 1])}:
            raise ValueError(
                f"sample {number} of this rank has fields of {sorted(found)} tokens, but its "
                f"padded_seq_len is {int(lengths[number, 1])}; give every field that length"
            )
        own = [_tensor(sample[field]).dtype for field in FIELDS]
        kinds = kinds or own
        if own != kinds or not set(own) <= set(DTYPES):
            raise ValueError(
                f"{', '.join(FIELDS)} of sample {number} of this rank are {own}, those of sample 0 "
                f"{kinds}; use one configuration, and real types"
            )
    return [DTYPES.index(kind) for kind in kinds] or [0] * len(FIELDS), lengths


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


def _tensor(values: Any) -> torch.Tensor:
    array = np.ascontiguousarray(values)
    return torch.from_numpy(array if array.flags.writeable else array.copy())
