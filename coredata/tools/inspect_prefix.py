"""What is in a token file: counts, lengths, special tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._kernel import kernel
from coredata._typing import Int32, Int64
from coredata.formats import IndexedDataset, get_bin_path, get_idx_path, has_modes
from coredata.storage import size
from coredata.tools.view_text import special_names

_BLOCK = 1 << 20
SCANNED = 50_000_000
"""Tokens that are looked at for special ones, unless told otherwise: spread over the file."""
_LASTS = 100_000
_SHOWN_LASTS = 3


@dataclass(frozen=True)
class Lengths:
    """Lengths of the sequences of a file, in tokens.

    Attributes:
        least: the shortest.
        mean: on average.
        quantiles: share -> length, such as "50 %".
        most: the longest.
        empty: how many have no tokens.
        histogram: (from, to, how many), by powers of two.
    """

    least: int
    mean: float
    quantiles: Mapping[str, int]
    most: int
    empty: int
    histogram: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class SpecialShare:
    """How often an id comes.

    Attributes:
        name: what it is called.
        id: the id.
        count: how often it was seen.
        share: of the tokens (or sequences) that were looked at.
    """

    name: str
    id: int
    count: int
    share: float


@dataclass(frozen=True)
class PrefixFacts:
    """What a token file holds.

    Attributes:
        prefix: which.
        dtype: of its tokens.
        documents: how many.
        sequences: how many.
        tokens: how many.
        bin_bytes: size of `.bin`.
        idx_bytes: size of `.idx`.
        modes: whether sequences have modes.
        lengths: of its sequences; None if there are none.
        scanned: tokens that were looked at for `special`.
        special: special tokens of the tokenizer, if one was given.
        last: the commonest last tokens of sequences, of those looked at.
    """

    prefix: str
    dtype: str
    documents: int
    sequences: int
    tokens: int
    bin_bytes: int
    idx_bytes: int
    modes: bool
    lengths: Lengths | None
    scanned: int
    special: tuple[SpecialShare, ...]
    last: tuple[SpecialShare, ...]


def prefix_facts(prefix: str, tokenizer: Any = None, scan: int = SCANNED) -> PrefixFacts:
    """Look into a token file.

    Args:
        prefix: the pair, without `.bin` and `.idx`.
        tokenizer: whose special tokens to count; None for none.
        scan: tokens to look at for them, in blocks spread over the file.

    Raises:
        IndexedDatasetError: the files are missing or damaged.
    """
    modes = has_modes(prefix)
    dataset = IndexedDataset(prefix, modes)
    identity = dataset.identity()
    names = {} if tokenizer is None else special_names(tokenizer)
    counts, scanned = _count_special(dataset, list(names), scan) if names else ([], 0)
    special = tuple(
        SpecialShare(name, number, count, count / max(scanned, 1))
        for (number, name), count in zip(names.items(), counts, strict=True)
    )
    return PrefixFacts(
        prefix=prefix,
        dtype=identity["dtype"],
        documents=identity["documents"],
        sequences=identity["sequences"],
        tokens=identity["tokens"],
        bin_bytes=size(get_bin_path(prefix)),
        idx_bytes=size(get_idx_path(prefix)),
        modes=modes,
        lengths=length_facts(dataset.sequence_lengths),
        scanned=scanned,
        special=tuple(sorted(special, key=lambda one: -one.count)),
        last=_last_tokens(dataset, names),
    )


def length_facts(lengths: Int32[np.ndarray, " sequences"]) -> Lengths | None:
    """Quantiles and histogram of lengths; None of no lengths."""
    if lengths.size == 0:
        return None
    edges = np.array([0, 1, *(1 << k for k in range(1, 32))], np.int64)
    buckets = np.zeros(edges.size, np.int64)
    for begin in range(0, lengths.size, _BLOCK):
        block = lengths[begin : begin + _BLOCK]
        places = np.searchsorted(edges, block, "right") - 1
        buckets += np.bincount(np.maximum(places, 0), minlength=edges.size)
    shares = (0.01, 0.25, 0.5, 0.75, 0.99)
    quantiles = np.quantile(lengths, shares, method="nearest")
    used = np.flatnonzero(buckets)
    first, last = int(used[0]), int(used[-1])
    uppers = [0, *((1 << k) - 1 for k in range(1, 33))]
    return Lengths(
        least=int(lengths.min()),
        mean=float(lengths.mean(dtype=np.float64)),
        quantiles={
            f"{share:.0%}": int(value) for share, value in zip(shares, quantiles, strict=True)
        },
        most=int(lengths.max()),
        empty=int(np.count_nonzero(lengths == 0)),
        histogram=tuple(
            (int(edges[k]), uppers[k], int(buckets[k])) for k in range(first, last + 1)
        ),
    )


def _count_special(dataset: IndexedDataset, wanted: list[int], scan: int) -> tuple[list[int], int]:
    """How often each id comes in blocks spread evenly over the file, and in how many tokens."""
    itemsize, reader = dataset.dtype.itemsize, dataset.bin_reader
    tokens = reader.size // itemsize
    if dataset.dtype.kind not in "iu" or not tokens:
        return [0] * len(wanted), 0
    slots = np.full(max(wanted) + 1, -1, np.int64)
    slots[wanted] = np.arange(len(wanted))
    counts = np.zeros(len(wanted), np.int64)
    blocks = -(-min(scan, tokens) // _BLOCK)
    step = max(tokens // blocks, 1)
    scanned = 0
    for begin in range(0, tokens, step):
        count = min(_BLOCK, step, tokens - begin, scan - scanned)
        if count <= 0:
            break
        data = np.frombuffer(reader.read(begin * itemsize, count * itemsize), np.uint8)
        count_ids(data.view(f"u{itemsize}"), slots, counts)
        scanned += count
    return counts.tolist(), scanned


@kernel
def count_ids(ids, slots, counts):
    """Add to `counts[slots[id]]` for each id whose slot is not negative."""
    for i in range(ids.size):
        if ids[i] < slots.size:
            slot = slots[ids[i]]
            if slot >= 0:
                counts[slot] += 1


def _last_tokens(dataset: IndexedDataset, names: Mapping[int, str]) -> tuple[SpecialShare, ...]:
    """The commonest last tokens of sequences that have tokens, spread over the file."""
    if dataset.dtype.kind not in "iu" or len(dataset) == 0:
        return ()
    numbers = np.unique(np.linspace(0, len(dataset) - 1, _LASTS).astype(np.int64))
    lengths = dataset.sequence_lengths[numbers].astype(np.int64)
    numbers, lengths = numbers[lengths > 0], lengths[lengths > 0]
    if numbers.size == 0:
        return ()
    last: Int64[np.ndarray, " n"] = np.empty(numbers.size, np.int64)
    ones = np.ones(numbers.size, np.int64)
    dataset.read_into(numbers, lengths - 1, ones, last, np.arange(numbers.size))
    ids, counts = np.unique(last, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_SHOWN_LASTS]
    return tuple(
        SpecialShare(names.get(int(ids[k]), ""), int(ids[k]), int(counts[k]), counts[k] / last.size)
        for k in order
    )
