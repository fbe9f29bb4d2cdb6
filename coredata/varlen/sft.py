"""Several conversations as one sample of fixed length."""

from collections.abc import Iterable

import numpy as np

from coredata.varlen.alignment import align
from coredata.varlen.conversations import IGNORED, LossFacts, Tokenized, loss_facts


def pack_conversations(
    conversations: Iterable[Tokenized],
    sequence_length: int,
    multiple: int,
    pad: int,
    *,
    pad_counts: bool = False,
) -> tuple[dict[str, np.ndarray], LossFacts]:
    """Lay conversations end to end, pad or cut them to a sample, and shift labels.

    After each conversation comes padding, until the tokens so far are a multiple of `multiple`.
    Conversations past the end are not asked for. The padding at the end belongs to the last one.

    Args:
        conversations: ids and targets of each.
        sequence_length: S, tokens of a sample.
        multiple: see `alignment`.
        pad: id of padding.
        pad_counts: whether a target that equals `pad` counts where it is no padding, as it must
            when `pad` is also an id that a model shall learn, such as the end of a document.

    Returns:
        `tokens`, `labels`, `position_ids` (int64) and `loss_mask` (float32), of S entries;
        `cu_seqlens` (int32, S + 1 entries: the ends of conversations, then S again and again) and
        `max_seqlen` (an int32 scalar, the longest conversation, padding included). And how much of
        the loss remains.
    """
    size = sequence_length + 1
    ids = np.full(size, pad, np.int64)
    targets = np.full(size, pad, np.int64)
    positions = np.zeros(size, np.int64)
    real = np.zeros(size, bool)
    bounds = [0]
    counted = kept = 0
    for conversation in conversations:
        start = bounds[-1]
        length = len(conversation.ids)
        fits = min(length, sequence_length - start)
        ids[start : start + fits] = conversation.ids[:fits]
        targets[start : start + fits] = conversation.targets[:fits]
        real[start : start + fits] = True
        facts = loss_facts(conversation.targets, fits)
        counted, kept = counted + facts.counted, kept + facts.kept
        end = align(start + length, multiple)
        bounds.append(min(end, sequence_length))
        if end > sequence_length:
            break
    if len(bounds) == 1:
        bounds.append(sequence_length)
    bounds[-1] = sequence_length
    for start, end in zip(bounds[:-1], [*bounds[1:-1], size], strict=True):
        positions[start:end] = np.arange(end - start)
    labels = targets[1:]
    ignored = (labels == IGNORED) | ~real[1:]
    if not pad_counts:
        ignored |= labels == pad
    cu_seqlens = np.full(size, sequence_length, np.int32)
    cu_seqlens[: len(bounds)] = bounds[:size]
    sample = {
        "tokens": ids[:-1],
        "labels": labels,
        "loss_mask": np.where(ignored, np.float32(0), np.float32(1)),
        "position_ids": positions[:-1],
        "cu_seqlens": cu_seqlens,
        "max_seqlen": np.array(np.diff(bounds).max(), np.int32),
    }
    return sample, LossFacts(counted, kept)
