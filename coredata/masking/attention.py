"""Dense attention masks of T5, for those whose attention cannot do without."""

from dataclasses import dataclass

import numpy as np

from coredata._typing import Bool, Integer


@dataclass(frozen=True, eq=False)
class T5AttentionMasks:
    """True where a query (row) must not see a key (column)."""

    encoder: Bool[np.ndarray, "batch 1 encoder encoder"]
    decoder: Bool[np.ndarray, "batch 1 decoder decoder"]
    """Causal as well."""
    encoder_decoder: Bool[np.ndarray, "batch 1 decoder encoder"]


def t5_attention_masks(
    enc_mask: Integer[np.ndarray, "batch encoder"], dec_mask: Integer[np.ndarray, "batch decoder"]
) -> T5AttentionMasks:
    """Pairwise masks of `enc_mask` and `dec_mask`, which are 1 where there is a token.

    They have a byte for every pair. Attention that takes segment ids needs none of them: give it
    `enc_mask` and `dec_mask` as they are (tokens are segment 1, padding is segment 0), and let
    the decoder be causal.
    """
    encoder, decoder = enc_mask.astype(bool), dec_mask.astype(bool)
    size = decoder.shape[1]
    later = np.arange(size)[None, :] > np.arange(size)[:, None]
    return T5AttentionMasks(
        _pairs(encoder, encoder), _pairs(decoder, decoder) | later, _pairs(decoder, encoder)
    )


def _pairs(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return ~(queries[:, None, :, None] & keys[:, None, None, :])
