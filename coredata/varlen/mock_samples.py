"""Made-up samples of given lengths, in the two flavours of the reference."""

import numpy as np

from coredata._typing import Int64
from coredata.varlen.alignment import align
from coredata.varlen.conversations import Tokenized
from coredata.varlen.samples import fixed_sample, single_sample


def counting_tokens(length: int) -> Int64[np.ndarray, " tokens"]:
    """1, 2, …, length − 1: a sample of `length` tokens lacks its end token."""
    return np.arange(1, length, dtype=np.int64)


def mock_single_sample(
    tokens: Int64[np.ndarray, " tokens"], sequence_length: int, multiple: int, eod: int, pad: int
) -> dict[str, np.ndarray]:
    """`tokens` and an end token as a `single_sample`, all of which counts in the loss.

    More than S + 1 tokens in all are cut to S, the last of which is the end token.
    """
    ended = _ended(tokens, sequence_length, sequence_length + 1, eod)
    return single_sample(Tokenized(ended, ended), multiple, pad)


def mock_packed_sample(
    tokens: Int64[np.ndarray, " tokens"], sequence_length: int, multiple: int, eod: int, pad: int
) -> dict[str, np.ndarray]:
    """`tokens` and an end token as a pack of one conversation, all of which counts in the loss.

    More than S tokens in all are cut to S. One padding comes behind, then more, until the shifted
    length is a multiple of `multiple`.

    Returns:
        `tokens`, `labels`, `position_ids` (int64) and `loss_mask` (float32), of padded length;
        `cu_seqlens` (int32: 0 and that length) and `max_seqlen` (an int32 scalar).
    """
    ended = _ended(tokens, sequence_length, sequence_length, eod)
    length = align(len(ended), multiple)
    sample = fixed_sample(Tokenized(ended, ended), length, pad)
    del sample["padding_mask"]
    sample["cu_seqlens"] = np.array([0, length], np.int32)
    sample["max_seqlen"] = np.array(length, np.int32)
    return sample


def mock_fixed_sample(
    tokens: Int64[np.ndarray, " tokens"], sequence_length: int, eod: int, pad: int
) -> dict[str, np.ndarray]:
    """`tokens` and an end token, cut and padded to S entries: no boundaries, no lengths."""
    ended = _ended(tokens, sequence_length, sequence_length, eod)
    sample = fixed_sample(Tokenized(ended, ended), sequence_length, pad)
    del sample["padding_mask"]
    return sample


def _ended(
    tokens: Int64[np.ndarray, " tokens"], sequence_length: int, limit: int, eod: int
) -> Int64[np.ndarray, " ended"]:
    """`tokens` and `eod`; if that is more than `limit`, S tokens of them, ended all the same."""
    if len(tokens) + 1 > limit:
        tokens = tokens[: sequence_length - 1]
    return np.append(tokens, np.int64(eod))
