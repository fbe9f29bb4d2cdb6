"""One row as one sample: of its own length, for packing, or padded to a fixed one."""

import numpy as np

from coredata.varlen.alignment import align
from coredata.varlen.conversations import IGNORED, LossFacts, Tokenized, loss_facts


def limit_tokens(
    tokenized: Tokenized, sequence_length: int, eod: int
) -> tuple[Tokenized, LossFacts]:
    """At least two and at most S + 1 tokens, the last of which is `eod`; and what was lost.

    Nothing at all becomes two end tokens. What is longer than S + 1 tokens is cut, its last token
    made an end token. An end token put in counts in the loss.

    A row of S + 1 tokens that does not end with `eod` gets one all the same, as in the reference:
    it is then one longer than S + 1.
    """
    ids, targets = tokenized
    if len(ids) == 0:
        both = np.full(2, eod, np.int64)
        return Tokenized(both, both.copy()), LossFacts(0, 0)
    size = sequence_length + 1
    kept = len(ids)
    if len(ids) > size:
        ids, targets = ids[:size].copy(), targets[:size].copy()
        kept = size
        if ids[-1] != eod:
            ids[-1] = targets[-1] = eod
            kept = size - 1
    if ids[-1] != eod:
        ids, targets = np.append(ids, eod), np.append(targets, eod)
    return Tokenized(ids, targets), loss_facts(tokenized.targets, kept)


def single_sample(tokenized: Tokenized, multiple: int, pad: int) -> dict[str, np.ndarray]:
    """Tokens with an end, padded to a multiple of `multiple` and shifted.

    Returns:
        `tokens`, `labels`, `position_ids` (int64) and `loss_mask` (float32), of padded length,
        and `original_seq_len` and `padded_seq_len` (int32, one entry). Loss is masked by position
        and target, so that `pad` may be an id that also counts.
    """
    original = len(tokenized.ids) - 1
    padded = align(original, multiple)
    fields = _shifted(tokenized, padded, pad)
    fields["original_seq_len"] = np.array([original], np.int32)
    fields["padded_seq_len"] = np.array([padded], np.int32)
    return fields


def fixed_sample(tokenized: Tokenized, sequence_length: int, pad: int) -> dict[str, np.ndarray]:
    """Tokens with an end, padded to `sequence_length` and shifted: S entries in each field.

    Returns:
        The fields of `single_sample` without the lengths, and `padding_mask` (bool, True where
        there is only padding).
    """
    tokenized = Tokenized(*(values[: sequence_length + 1] for values in tokenized))
    fields = _shifted(tokenized, sequence_length, pad)
    original = len(tokenized.ids) - 1
    fields["padding_mask"] = np.arange(sequence_length) >= original
    return fields


def _shifted(tokenized: Tokenized, length: int, pad: int) -> dict[str, np.ndarray]:
    padding = np.full(length + 1 - len(tokenized.ids), pad, np.int64)
    ids = np.concatenate([tokenized.ids, padding])
    labels = np.concatenate([tokenized.targets, padding])[1:]
    counts = labels != IGNORED
    counts[len(tokenized.ids) - 1 :] = False
    return {
        "tokens": ids[:-1],
        "labels": labels,
        "loss_mask": counts.astype(np.float32),
        "position_ids": np.arange(length, dtype=np.int64),
    }
