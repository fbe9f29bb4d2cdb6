"""From spans of tokens to a batch of GPT samples."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from coredata._typing import Int64, Integer
from coredata.datasets.batch_memory import allocate_layout, layout
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.gpt_fields import (
    fill_attention_mask,
    fill_boundaries,
    fill_document_positions,
    fill_fields,
    fill_segment_ids,
    mark_ends,
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
    out_offsets, row_lengths = _place(spans, sequence_length, extra)
    text = np.empty((len(row_lengths), sequence_length + 1), dtype)
    source.read_into(spans.sequences, spans.offsets, spans.lengths, text.reshape(-1), out_offsets)
    return GatheredText(text, row_lengths, spans)


def read_batch(
    source: TokenSource, spans: SampleSpans, config: GPTDatasetConfig, ids: SpecialIds
) -> Batch:
    """All fields that `config` asks for, of the samples that are `spans`.

    Raises:
        ValueError: a sample longer than S + 1 tokens (S without extra token), or a span that the
            source lacks.
        IndexError: a sequence that the source lacks.
    """
    extra = int(config.add_extra_token_to_sequence)
    dtype = np.dtype(config.output_dtype)
    return make_fields(gather(source, spans, config.sequence_length, extra, dtype), config, ids)


def make_fields(gathered: GatheredText, config: GPTDatasetConfig, ids: SpecialIds) -> Batch:
    """All fields that `config` asks for, newly allocated; nothing is shared between batches."""
    text, row_lengths = gathered.text, gathered.row_lengths
    rows, width = text.shape
    memory = text.reshape(-1).view()
    memory.flags.writeable = False
    row_splits = np.arange(rows + 1)
    starts = row_splits[:-1] * width
    batch = allocate_layout(batch_layout(rows, config))
    fill_fields(
        memory,
        starts,
        row_lengths,
        row_splits,
        ids.pad,
        counted(config),
        batch["tokens"],
        batch["labels"],
        batch["loss_mask"],
        batch["position_ids"],
    )
    mark_ends_in(batch, memory, starts, row_lengths, row_splits, config, ids)
    spans = gathered.spans
    add_boundaries(batch, spans.row_splits, spans.lengths, row_lengths, config)
    if makes_attention_mask(config):
        mask = batch["attention_mask"]
        fill_attention_mask(text, row_lengths, ids.pad, ids.eod, config.reset_attention_mask, mask)
    return batch


def makes_attention_mask(config: GPTDatasetConfig) -> bool:
    """Whether samples have a dense attention mask."""
    return config.create_attention_mask and not config.inter_document_masking


def _place(
    spans: SampleSpans, sequence_length: int, extra: int
) -> tuple[Int64[np.ndarray, " spans"], Int64[np.ndarray, " batch"]]:
    """Where each span goes in rows of S + 1 tokens, and how many tokens each row has."""
    row_lengths = np.empty(len(spans.row_splits) - 1, np.int64)
    out_offsets = np.empty(len(spans.lengths), np.int64)
    row = place_spans(
        spans.row_splits, spans.lengths, sequence_length + 1, extra, out_offsets, row_lengths
    )
    if row >= 0:
        raise ValueError(
            f"row {row} of the batch has more than {sequence_length + extra} tokens; the sample "
            "index does not belong to this sequence_length. Remove it from the index cache"
        )
    return out_offsets, row_lengths


def counted(config: GPTDatasetConfig) -> bool:
    """Whether positions are just 0 … S-1."""
    return not (config.inter_document_masking or config.reset_position_ids)


def mark_ends_in(
    batch: Batch,
    memory: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    row_splits: np.ndarray,
    config: GPTDatasetConfig,
    ids: SpecialIds,
) -> None:
    """What depends on end-of-document tokens in the text, if it is asked for."""
    restarted = config.reset_position_ids and not config.inter_document_masking
    if restarted or config.eod_mask_loss:
        mark_ends(
            memory,
            starts,
            lengths,
            row_splits,
            ids.pad == ids.eod,
            ids.eod,
            config.eod_mask_loss,
            restarted,
            batch["loss_mask"],
            batch["position_ids"],
        )


def add_boundaries(
    batch: Batch,
    row_splits: np.ndarray,
    lengths: np.ndarray,
    row_lengths: np.ndarray,
    config: GPTDatasetConfig,
) -> None:
    """Add the fields that follow from where documents begin, if they are asked for."""
    if config.inter_document_masking or config.segment_ids:
        rows, size = len(row_lengths), config.sequence_length
        cu_seqlens = np.empty((rows, size + 1), np.int32)
        max_seqlen = np.empty(rows, np.int32)
        extra = int(config.add_extra_token_to_sequence)
        fill_boundaries(row_splits, lengths, extra, cu_seqlens, max_seqlen)
        if config.inter_document_masking:
            fill_document_positions(cu_seqlens, batch["position_ids"])
            batch["cu_seqlens"] = cu_seqlens
            batch["max_seqlen"] = max_seqlen
        if config.segment_ids:
            fill_segment_ids(cu_seqlens, row_lengths, batch["segment_ids"])


def batch_layout(rows: int, config: GPTDatasetConfig) -> np.dtype:
    """The fields that are always there, masks and segments, in memory."""
    return _layout(
        rows,
        config.sequence_length,
        config.output_dtype,
        makes_attention_mask(config),
        config.segment_ids,
    )


@lru_cache(maxsize=64)
def _layout(rows: int, size: int, dtype: str, attention_mask: bool, segment_ids: bool) -> np.dtype:
    """Shapes and dtypes, in the order in which samples list their fields."""
    shape = (rows, size)
    fields: dict[str, tuple[tuple[int, ...], str]] = {
        "tokens": (shape, dtype),
        "labels": (shape, dtype),
    }
    if attention_mask:
        fields["attention_mask"] = ((rows, 1, size, size), "bool")
    fields["loss_mask"] = (shape, "float32")
    fields["position_ids"] = (shape, dtype)
    if segment_ids:
        fields["segment_ids"] = (shape, "int32")
    return layout(fields)
