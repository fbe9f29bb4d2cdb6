"""Which tokens a context-parallel rank holds, so that causal attention costs all ranks the same."""

import numpy as np

from coredata._typing import Int64, Integer


def context_parallel_partition(
    cu_seqlens_padded: Integer[np.ndarray, " bounds"], context_parallel_size: int
) -> Int64[np.ndarray, "ranks share"]:
    """The positions of each rank, segment by segment.

    Every segment is cut in 2 · context_parallel_size equal chunks; rank r holds chunk r and, from
    the other end, chunk 2 · context_parallel_size − 1 − r. With one rank there is nothing to cut.

    Args:
        cu_seqlens_padded: boundaries of the segments of a pack, from 0; `[0, sequence_length]` for
            a sequence that is not packed.
        context_parallel_size: ranks that share the sequence.

    Returns:
        Row r: the positions of rank r in rising order. Index a field of the pack with it. All ranks
        have the same number.

    Raises:
        ValueError: a segment that is no multiple of 2 · context_parallel_size, boundaries that do
            not rise from 0, or no ranks.
    """
    ranks = context_parallel_size
    bounds = cu_seqlens_padded.astype(np.int64)
    if ranks < 1:
        raise ValueError(f"context_parallel_size must be at least 1, found {ranks}.")
    lengths = np.diff(bounds)
    if not bounds.size or bounds[0] != 0 or (lengths < 0).any():
        raise ValueError(f"cu_seqlens_padded must rise from 0, found {bounds}.")
    if ranks == 1:
        return np.arange(bounds[-1])[None]
    chunks = lengths // (2 * ranks)
    if (chunks * 2 * ranks != lengths).any():
        wrong = int(np.argmax(chunks * 2 * ranks != lengths))
        raise ValueError(
            f"Segment {wrong} has {lengths[wrong]} tokens, which {ranks} context-parallel ranks "
            f"cannot share evenly: it takes a multiple of 2 × {ranks} = {2 * ranks}. "
            f"Pad it to {(int(chunks[wrong]) + 1) * 2 * ranks}."
        )
    share = 2 * chunks
    segment = np.repeat(np.arange(share.size), share)
    within = np.arange(segment.size) - (np.cumsum(share) - share)[segment]
    chunk, start = chunks[segment], bounds[:-1][segment]
    rank = np.arange(ranks)[:, None]
    return start + within + np.where(within < chunk, rank, 2 * ranks - 2 - rank) * chunk


def inverse_partition(
    partition: Int64[np.ndarray, "ranks share"],
) -> Int64[np.ndarray, " tokens"]:
    """Where each position went: `partition.reshape(-1)[inverse]` is 0, 1, 2, ….

    Put what the ranks hold one after the other and index it with this to have the sequence again.
    """
    inverse = np.empty(partition.size, np.int64)
    inverse[partition.reshape(-1)] = np.arange(partition.size)
    return inverse
