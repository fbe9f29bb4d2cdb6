"""Samples to packed sequences and back: concatenation, boundaries, padding, counts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coredata._typing import Bool, Int32, Integer, Shaped
from coredata.varlen.segments import MAX_LIMIT

FIELDS = ("tokens", "labels", "loss_mask", "position_ids")
"""The fields of a sample that have one entry per token."""

_LENGTHS = ("original_seq_len", "padded_seq_len")
_BOUNDARIES = ("cu_seqlens", "max_seqlen")


def pack_samples(samples: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Put the samples of a pack one after the other, as one sequence.

    Args:
        samples: each has the fields of `FIELDS`, of padded length, and `original_seq_len` and
            `padded_seq_len`.

    Returns:
        The fields concatenated, and, all int32: `cu_seqlens` (samples + 1; boundaries by original
        length), `cu_seqlens_padded` (samples + 1; where samples really start) and `max_seqlen`
        (a scalar; the longest padded length).

    Raises:
        ValueError: no sample, a field whose length is not `padded_seq_len`, an original length
            above the padded one, or 2^31 tokens and more.
    """
    if not samples:
        raise ValueError("There is no sample to pack; leave empty packs out.")
    original = np.array([_length(sample, "original_seq_len") for sample in samples])
    padded = np.array([_length(sample, "padded_seq_len") for sample in samples])
    for number, sample in enumerate(samples):
        for field in FIELDS:
            if len(sample[field]) != padded[number]:
                raise ValueError(
                    f"Sample {number} of the pack has {len(sample[field])} {field}, but its "
                    f"padded_seq_len is {padded[number]}. Give every field that length."
                )
        if not 0 <= original[number] <= padded[number]:
            raise ValueError(
                f"Sample {number} of the pack has original_seq_len {original[number]}; it must be "
                f"from 0 to its padded_seq_len {padded[number]}."
            )
    packed = {field: np.concatenate([s[field] for s in samples]) for field in FIELDS}
    packed["cu_seqlens"] = boundaries(original)
    packed["cu_seqlens_padded"] = boundaries(padded)
    packed["max_seqlen"] = np.array(padded.max(), np.int32)
    return packed


def unpack_samples(batch: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Cut packed samples apart, so that their parts can be packed anew.

    Samples with `cu_seqlens` are cut at every boundary; empty segments are dropped, and a segment's
    original length is its padded one. A field that is a single number, such as a blend's
    `dataset_id`, is each part's. Samples with `padded_seq_len` are taken as they are.

    Raises:
        ValueError: samples of both kinds, samples of neither, or boundaries that do not cover the
            sample.
    """
    packed = [("cu_seqlens" in sample, "padded_seq_len" in sample) for sample in batch]
    for number, kinds in enumerate(packed):
        if sum(kinds) != 1 or kinds != packed[0]:
            found = {(1, 0): "cu_seqlens", (0, 1): "padded_seq_len", (1, 1): "both"}
            raise ValueError(
                f"Sample {number} of the batch has {found.get(kinds, 'neither')}, sample 0 "
                f"{found.get(packed[0], 'neither')}. All samples have cu_seqlens (packs, which are "
                "cut apart) or all have padded_seq_len (single samples)."
            )
    if not packed or not packed[0][0]:
        return [dict(sample) for sample in batch]
    return [part for number, sample in enumerate(batch) for part in _cut(number, sample)]


def _cut(number: int, sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    bounds = sample["cu_seqlens"].astype(np.int64)
    total = len(sample["tokens"])
    if bounds[0] != 0 or bounds[-1] != total or (np.diff(bounds) < 0).any():
        raise ValueError(
            f"cu_seqlens of sample {number} must rise from 0 to its {total} tokens, found "
            f"{bounds[:4]} … {bounds[-2:]}."
        )
    fields = {name: value for name, value in sample.items() if name not in _BOUNDARIES}
    for name, value in fields.items():
        if np.shape(value)[:1] not in ((), (total,)):
            raise ValueError(
                f"Field {name} of sample {number} has shape {np.shape(value)}; to be cut with its "
                f"{total} tokens it needs one entry for each. Leave it out before unpacking."
            )
    parts = []
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if end > start:
            part: dict[str, Any] = {
                name: value[start:end] if np.ndim(value) else value
                for name, value in fields.items()
            }
            part.update((name, np.array([end - start], np.int32)) for name in _LENGTHS)
            parts.append(part)
    return parts


def padding_mask(
    cu_seqlens: Integer[np.ndarray, " bounds"], cu_seqlens_padded: Integer[np.ndarray, " bounds"]
) -> Bool[np.ndarray, " tokens"]:
    """Which positions of a pack are padding: those past the original length of their segment."""
    padded = np.diff(cu_seqlens_padded)
    ends = cu_seqlens_padded[:-1] + np.diff(cu_seqlens)
    return np.arange(cu_seqlens_padded[-1]) >= np.repeat(ends, padded)


def clear_padding(packed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A pack whose tokens, labels, loss mask and positions are 0 in padded places."""
    padding = padding_mask(packed["cu_seqlens"], packed["cu_seqlens_padded"])
    cleared = {
        field: np.where(padding, np.zeros((), packed[field].dtype), packed[field])
        for field in FIELDS
    }
    return {**packed, **cleared}


def boundaries(lengths: Integer[np.ndarray, " segments"]) -> Int32[np.ndarray, " segments_and_1"]:
    """0, and the end of each segment, as attention kernels want them.

    Raises:
        ValueError: the last one does not fit 32 bits.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    if ends.size and ends[-1] > MAX_LIMIT:
        raise ValueError(
            f"{ends[-1]} tokens in one pack: boundaries are 32-bit and end at {MAX_LIMIT}. "
            "Make smaller packs."
        )
    return np.concatenate([np.zeros(1, np.int32), ends.astype(np.int32)])


class TokenCounts(NamedTuple):
    """What FLOPs of a global batch are counted from. Python integers: exact at any size."""

    tokens: int
    squared: int


def token_counts(lengths: Shaped[np.ndarray, " samples"]) -> TokenCounts:
    """The sum of the lengths, and the sum of their squares."""
    values, counts = np.unique(lengths.astype(np.int64), return_counts=True)
    pairs = list(zip(values.tolist(), counts.tolist(), strict=True))
    return TokenCounts(sum(n * c for n, c in pairs), sum(n * n * c for n, c in pairs))


def _length(sample: Mapping[str, Any], name: str) -> int:
    return int(np.asarray(sample[name]).reshape(-1)[0])
