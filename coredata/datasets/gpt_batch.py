"""From spans of tokens to a batch of GPT samples: one gather, then the fields."""

from dataclasses import dataclass

import numpy as np

from coredata._typing import Integer
from coredata.datasets.batch_memory import allocate
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
    text, row_lengths, spans = gathered.text, gathered.row_lengths, gathered.spans
    batch = allocate(_fields(len(text), text.shape[1] - 1, config))
    fill_fields(
        text,
        row_lengths,
        ids.pad,
        ids.eod,
        config.eod_mask_loss,
        config.reset_position_ids and not config.inter_document_masking,
        batch["tokens"],
        batch["labels"],
        batch["loss_mask"],
        batch["position_ids"],
    )
    if "attention_mask" in batch:
        fill_attention_mask(text, ids.eod, config.reset_attention_mask, batch["attention_mask"])
    if config.inter_document_masking or config.segment_ids:
        cu_seqlens = np.empty(text.shape, np.int32)
        max_seqlen = np.empty(len(text), np.int32)
        extra = int(config.add_extra_token_to_sequence)
        fill_boundaries(spans.row_splits, spans.lengths, extra, cu_seqlens, max_seqlen)
        if config.inter_document_masking:
            fill_document_positions(cu_seqlens, batch["position_ids"])
            batch["cu_seqlens"] = cu_seqlens
            batch["max_seqlen"] = max_seqlen
        if config.segment_ids:
            fill_segment_ids(cu_seqlens, row_lengths, batch["segment_ids"])
    return batch


def _fields(
    rows: int, size: int, config: GPTDatasetConfig
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shapes and dtypes, in the order in which samples list their fields."""
    fields: dict[str, tuple[tuple[int, ...], str]] = {
        "tokens": ((rows, size), config.output_dtype),
        "labels": ((rows, size), config.output_dtype),
    }
    if config.create_attention_mask and not config.inter_document_masking:
        fields["attention_mask"] = ((rows, 1, size, size), "bool")
    fields["loss_mask"] = ((rows, size), "float32")
    fields["position_ids"] = ((rows, size), config.output_dtype)
    if config.segment_ids:
        fields["segment_ids"] = ((rows, size), "int32")
    return fields
