"""From spans of tokens to a batch of GPT samples: one gather, then the fields."""

from dataclasses import dataclass

import numpy as np

from coredata._typing import Integer
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.gpt_fields import (
    fill_attention_mask,
    fill_boundaries,
    fill_document_positions,
    fill_fields,
    fill_segment_ids,
    place_spans,
)
from coredata.datasets.protocol import Batch, TokenSource
from coredata.datasets.special_ids import SpecialIds
from coredata.indices import SampleSpans


@dataclass(frozen=True)
class GatheredText:
    """The tokens of some samples.

    Attributes:
        text: (B, S + 1). Beyond a row's tokens it is uninitialised.
        row_lengths: int64 (B), tokens of each row; at most S + 1, at most S without extra token.
        spans: where they came from.
    """

    text: Integer[np.ndarray, "batch width"]
    row_lengths: Integer[np.ndarray, " batch"]
    spans: SampleSpans


def gather(
    source: TokenSource, spans: SampleSpans, sequence_length: int, extra: int, dtype: np.dtype
) -> GatheredText:
    """Read `spans` into rows, in one call to the source.

    Raises:
        ValueError: a sample longer than S + `extra` tokens, or a span that the source lacks.
        IndexError: a sequence that the source lacks.
    """
    rows = len(spans.row_splits) - 1
    text = np.empty((rows, sequence_length + 1), dtype)
    row_lengths = np.empty(rows, np.int64)
    out_offsets = np.empty(len(spans.lengths), np.int64)
    row = place_spans(spans.row_splits, spans.lengths, text.shape[1], out_offsets, row_lengths)
    if row < 0 and not extra and rows and int(row_lengths.max()) > sequence_length:
        row = int(row_lengths.argmax())
    if row >= 0:
        raise ValueError(
            f"row {row} of the batch has more than {sequence_length + extra} tokens; the sample "
            "index does not belong to this sequence_length. Remove it from the index cache"
        )
    source.read_into(spans.sequences, spans.offsets, spans.lengths, text.reshape(-1), out_offsets)
    return GatheredText(text, row_lengths, spans)


def make_fields(gathered: GatheredText, config: GPTDatasetConfig, ids: SpecialIds) -> Batch:
    """All fields that `config` asks for, newly allocated; nothing is shared between batches."""
    text, row_lengths = gathered.text, gathered.row_lengths
    shape = (len(text), text.shape[1] - 1)
    dtype = np.dtype(config.output_dtype)
    tokens, labels, position_ids = (np.empty(shape, dtype) for _ in range(3))
    loss_mask = np.empty(shape, np.float32)
    fill_fields(
        text,
        row_lengths,
        ids.pad,
        ids.eod,
        config.eod_mask_loss,
        config.reset_position_ids and not config.inter_document_masking,
        tokens,
        labels,
        loss_mask,
        position_ids,
    )
    batch = {"tokens": tokens, "labels": labels}
    if config.create_attention_mask and not config.inter_document_masking:
        mask = np.empty((shape[0], 1, shape[1], shape[1]), np.bool_)
        fill_attention_mask(text, ids.eod, config.reset_attention_mask, mask)
        batch["attention_mask"] = mask
    batch["loss_mask"] = loss_mask
    batch["position_ids"] = position_ids
    if config.inter_document_masking or config.segment_ids:
        _add_documents(batch, gathered, config)
    return batch


def _add_documents(batch: Batch, gathered: GatheredText, config: GPTDatasetConfig) -> None:
    shape = batch["tokens"].shape
    cu_seqlens = np.empty((shape[0], shape[1] + 1), np.int32)
    max_seqlen = np.empty(shape[0], np.int32)
    spans, extra = gathered.spans, int(config.add_extra_token_to_sequence)
    fill_boundaries(spans.row_splits, spans.lengths, extra, cu_seqlens, max_seqlen)
    if config.inter_document_masking:
        fill_document_positions(cu_seqlens, batch["position_ids"])
        batch["cu_seqlens"] = cu_seqlens
        batch["max_seqlen"] = max_seqlen
    if config.segment_ids:
        segment_ids = np.empty(shape, np.int32)
        fill_segment_ids(cu_seqlens, gathered.row_lengths, segment_ids)
        batch["segment_ids"] = segment_ids
