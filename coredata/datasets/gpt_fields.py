"""Kernels that turn rows of tokens into the fields of GPT samples.

`text` holds S + 1 tokens for each of B samples: the inputs are its first S columns, the labels its
last S. Kernels write every element of their outputs, so these may be uninitialised.
"""

import numpy as np

from coredata._kernel import kernel


@kernel
def place_spans(row_splits, lengths, width, out_offsets, row_lengths):
    """Where each span goes in rows of `width` tokens; -1, or the first row that is too long.

    Args:
        row_splits: int64 (B + 1); the spans of row b are row_splits[b] … row_splits[b + 1] - 1.
        lengths: int64, tokens of each span.
        width: tokens that a row may have.
        out_offsets: int64, written: where in the flat buffer each span starts.
        row_lengths: int64 (B), written: tokens of each row.
    """
    for row in range(len(row_lengths)):
        filled = np.int64(0)
        for span in range(row_splits[row], row_splits[row + 1]):
            out_offsets[span] = row * width + filled
            filled += lengths[span]
        if filled > width:
            return row
        row_lengths[row] = filled
    return np.int64(-1)


@kernel
def fill_fields(
    text,
    row_lengths,
    pad,
    eod,
    eod_mask_loss,
    reset_position_ids,
    tokens,
    labels,
    loss_mask,
    position_ids,
):
    """Inputs, labels, loss mask and positions.

    What lies in `text` beyond a row's length is set to `pad` first. Loss is 0 where the label is
    `pad`, and with `eod_mask_loss` where the input is `eod`; positions restart after `eod` with
    `reset_position_ids`. Last, `pad` becomes 0 in inputs and labels, so that they can be looked up.
    """
    batch, sequence_length = tokens.shape
    zero = np.float32(0)
    one = np.float32(1)
    for row in range(batch):
        for i in range(row_lengths[row], sequence_length + 1):
            text[row, i] = pad
        for i in range(sequence_length):
            token = text[row, i]
            tokens[row, i] = 0 if token == pad else token
        for i in range(sequence_length):
            label = text[row, i + 1]
            labels[row, i] = 0 if label == pad else label
            loss_mask[row, i] = zero if label == pad else one
        if eod_mask_loss:
            for i in range(sequence_length):
                if text[row, i] == eod:
                    loss_mask[row, i] = zero
        if reset_position_ids:
            start = 0
            for i in range(sequence_length):
                position_ids[row, i] = i - start
                if text[row, i] == eod:
                    start = i + 1
        else:
            for i in range(sequence_length):
                position_ids[row, i] = i


@kernel
def fill_attention_mask(text, eod, reset_attention_mask, mask):
    """Dense masks, bool (B, 1, S, S), True where a query (row) must not see a key (column).

    Causal; with `reset_attention_mask`, what comes after an `eod` does not see it or anything
    before. `text` is padded already.
    """
    batch, _, sequence_length, _ = mask.shape
    for row in range(batch):
        start = 0
        for query in range(sequence_length):
            for key in range(sequence_length):
                mask[row, 0, query, key] = key > query or key < start
            if reset_attention_mask and text[row, query] == eod:
                start = query + 1


@kernel
def fill_boundaries(row_splits, lengths, extra, cu_seqlens, max_seqlen):
    """Where documents start in each sample: int32 (B, S + 1), then S again and again; the longest.

    A span is a document. The `extra` token is taken off the last one, and a document that becomes
    empty is left out. Padding belongs to the last document, as in the reference.
    """
    batch, width = cu_seqlens.shape
    sequence_length = width - 1
    for row in range(batch):
        filled = np.int64(-extra)
        for span in range(row_splits[row], row_splits[row + 1]):
            filled += lengths[span]
        count = 1
        start = np.int64(0)
        longest = np.int64(0)
        cu_seqlens[row, 0] = 0
        for span in range(row_splits[row], row_splits[row + 1]):
            if 0 < start < filled:
                cu_seqlens[row, count] = start
                longest = max(longest, start - np.int64(cu_seqlens[row, count - 1]))
                count += 1
            start += lengths[span]
        longest = max(longest, sequence_length - np.int64(cu_seqlens[row, count - 1]))
        for i in range(count, width):
            cu_seqlens[row, i] = sequence_length
        max_seqlen[row] = longest


@kernel
def fill_document_positions(cu_seqlens, position_ids):
    """Positions that count from 0 in each document."""
    batch, sequence_length = position_ids.shape
    for row in range(batch):
        document = 0
        for i in range(sequence_length):
            if i == cu_seqlens[row, document + 1]:
                document += 1
            position_ids[row, i] = i - cu_seqlens[row, document]


@kernel
def fill_segment_ids(cu_seqlens, row_lengths, segment_ids):
    """Number of the document of each token, from 1, int32 (B, S); 0 for padding.

    `row_lengths` counts the tokens of each row of `text`; inputs beyond it are padding.
    """
    batch, sequence_length = segment_ids.shape
    for row in range(batch):
        document = 0
        for i in range(sequence_length):
            if i == cu_seqlens[row, document + 1]:
                document += 1
            segment_ids[row, i] = document + 1 if i < row_lengths[row] else 0
