"""Kernels that turn spans of tokens into the fields of GPT samples.

The text of a sample is S + 1 tokens, S without an extra token: the inputs are its first S columns,
the labels its last S. Kernels write every element of their outputs, so these may be uninitialised.
Loops run over slices, whose indices need no test for being negative, so that they are vectorised.
"""

import numpy as np

from coredata._kernel import inlined, kernel, part
from coredata.indices.prefetch import prefetch

_BLOCK = 64
_CACHE_LINE = 64
_PAGE = 4096
_ROWS_AHEAD = 32
"""How many rows ahead the first line of each page is asked for, and with it the page's place."""
_LINES_OF_SPAN = 128
"""How much of the next span is asked for while one is copied; processors follow long ones."""
_LINES_OF_ROW = 512
"""How much of the next row is asked for while one is written."""


@kernel
def place_spans(row_splits, lengths, width, extra, out_offsets, row_lengths):
    """Where each span goes in rows of `width` tokens; -1, or the first row that is too long.

    Args:
        row_splits: int64 (B + 1); the spans of row b are row_splits[b] … row_splits[b + 1] - 1.
        lengths: int64, tokens of each span.
        width: S + 1.
        extra: 1, or 0 where a row may have only S tokens.
        out_offsets: int64, written: where in the flat buffer each span starts.
        row_lengths: int64 (B), written: tokens of each row.
    """
    for row in range(len(row_lengths)):
        filled = np.int64(0)
        for span in range(row_splits[row], row_splits[row + 1]):
            out_offsets[span] = row * width + filled
            filled += lengths[span]
        if filled > width - 1 + extra:
            return row
        row_lengths[row] = filled
    return np.int64(-1)


@part
def fill(
    memory,
    starts,
    lengths,
    row_splits,
    pad,
    counted,
    tokens,
    labels,
    loss_mask,
    position_ids,
):
    """Inputs, labels, loss mask and positions, straight from where the tokens lie.

    Span i is `lengths[i]` tokens from `memory[starts[i]]`; the spans of row b are row_splits[b] up
    to row_splits[b + 1]. They have been checked: they lie in `memory`, and a row is at most S + 1
    tokens. What is missing in a row is `pad`. Loss is 0 where the label is `pad`. `pad` becomes 0
    in inputs and labels, so that they can be looked up. Positions are 0 … S-1 if they are to be
    `counted`, and left alone otherwise.

    A row is put together in its narrow dtype first: that costs little, and then all fields are
    written from their first column on, which keeps wide stores within cache lines. Meanwhile the
    tokens of the next row arrive; of rows longer than is asked for at once, span by span. Pages
    are asked for earlier still: to find where one lies takes longer than to fetch a line.
    """
    batch, size = tokens.shape
    line = np.int64(max(_CACHE_LINE // memory.itemsize, 1))
    page = np.int64(max(_PAGE // memory.itemsize, 1))
    room = _LINES_OF_ROW * line
    text = np.empty(size + 1, memory.dtype)
    for row in range(min(batch, _ROWS_AHEAD)):
        _ask_row(memory, starts, lengths, row_splits, row, size + 1, page)
    _ask_row(memory, starts, lengths, row_splits, 0, room, line)
    for row in range(batch):
        filled = np.int64(0)
        for span in range(row_splits[row], row_splits[row + 1]):
            if size > room and span + 1 < row_splits[batch]:
                asked = min(lengths[span + 1], _LINES_OF_SPAN * line)
                _ask(memory, starts[span + 1], asked, line)
            source = memory[starts[span] : starts[span] + lengths[span]]
            target = text[filled : filled + lengths[span]]
            for i in range(source.size):
                target[i] = source[i]
            filled += lengths[span]
        rest = text[filled:]
        for i in range(rest.size):
            rest[i] = 0  # what padding becomes; `pad` need not fit
        _ask_row(memory, starts, lengths, row_splits, row + _ROWS_AHEAD, size + 1, page)
        _ask_row(memory, starts, lengths, row_splits, row + 1, room, line)
        _write_row(text[:size], text[1:], pad, tokens[row], labels[row], loss_mask[row])
        without_loss = loss_mask[row, max(filled - 1, 0) :]
        for i in range(without_loss.size):
            without_loss[i] = 0
        if counted:
            _count(position_ids[row])


@inlined
def _ask_row(memory, starts, lengths, row_splits, row, room, step):
    """Ask for the spans of a row, up to `room` tokens; for nothing beyond the last row."""
    if row + 1 < row_splits.size:
        left = np.int64(room)
        for span in range(row_splits[row], row_splits[row + 1]):
            asked = min(lengths[span], left)
            _ask(memory, starts[span], asked, step)
            left -= asked


@inlined
def _ask(memory, start, length, step):
    """Ask for every `step`-th element of a span, and its last, ahead of their use."""
    for i in range(start, start + length, step):
        prefetch(memory, i)
    prefetch(memory, start + length - 1)


@inlined
def _write_row(inputs, targets, pad, tokens, labels, loss_mask):
    """All columns of a row. A loop for each field would be slower: they share what they load."""
    for i in range(tokens.size):
        tokens[i] = 0 if inputs[i] == pad else inputs[i]
        labels[i] = 0 if targets[i] == pad else targets[i]
        loss_mask[i] = np.float32(0) if targets[i] == pad else np.float32(1)


@kernel
def fill_fields(
    memory,
    starts,
    lengths,
    row_splits,
    pad,
    counted,
    tokens,
    labels,
    loss_mask,
    position_ids,
):
    """`fill`, for calls from Python."""
    fill(
        memory,
        starts,
        lengths,
        row_splits,
        pad,
        counted,
        tokens,
        labels,
        loss_mask,
        position_ids,
    )


@inlined
def _count(out):
    """0, 1, 2, …"""
    for i in range(out.size):
        out[i] = i


@kernel
def mark_ends(
    memory,
    starts,
    lengths,
    row_splits,
    pad_is_eod,
    eod,
    eod_mask_loss,
    restarted,
    loss_mask,
    position_ids,
):
    """No loss at `eod`, and if they are `restarted` positions that are counted anew after it.

    Spans are those of `fill_fields`. Blocks without an `eod`, which are nearly all, are passed
    over as a whole.
    """
    size = np.int64(loss_mask.shape[1])
    for row in range(loss_mask.shape[0]):
        filled = np.int64(0)
        restart = np.int64(0)
        for span in range(row_splits[row], row_splits[row + 1]):
            text = memory[starts[span] : starts[span] + min(lengths[span], size - filled)]
            for first in range(0, text.size, _BLOCK):
                block = text[first : first + _BLOCK]
                ends = np.int64(0)
                for i in range(block.size):
                    ends += block[i] == eod
                if ends == 0:
                    continue
                for i in range(block.size):
                    if block[i] == eod:
                        column = filled + first + i
                        if eod_mask_loss:
                            loss_mask[row, column] = 0
                        if restarted:
                            _count(position_ids[row, restart : column + 1])
                        restart = column + 1
            filled += text.size
        if restarted and pad_is_eod and filled < size:
            _count(position_ids[row, restart : filled + 1])
            position_ids[row, filled + 1 :] = 0
        elif restarted:
            _count(position_ids[row, restart:])


@kernel
def fill_attention_mask(text, row_lengths, pad, eod, reset_attention_mask, mask):
    """Dense masks, bool (B, 1, S, S), True where a query (row) must not see a key (column).

    Causal; with `reset_attention_mask`, what comes after an `eod` does not see it or anything
    before. `text` (B, S + 1) counts as `pad` beyond the length of a row.
    """
    batch, _, sequence_length, _ = mask.shape
    for row in range(batch):
        start = 0
        for query in range(sequence_length):
            for key in range(sequence_length):
                mask[row, 0, query, key] = key > query or key < start
            token = text[row, query] if query < row_lengths[row] else pad
            if reset_attention_mask and token == eod:
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
        cu_seqlens[row, count:] = sequence_length
        max_seqlen[row] = longest


@kernel
def fill_document_positions(cu_seqlens, position_ids):
    """Positions that count from 0 in each document."""
    batch, sequence_length = position_ids.shape
    for row in range(batch):
        for document in range(sequence_length):
            begin, end = cu_seqlens[row, document], cu_seqlens[row, document + 1]
            _count(position_ids[row, begin:end])
            if end == sequence_length:
                break


@kernel
def fill_segment_ids(cu_seqlens, row_lengths, segment_ids):
    """Number of the document of each token, from 1, int32 (B, S); 0 for padding.

    `row_lengths` counts the tokens of each row of text; inputs beyond it are padding.
    """
    batch, sequence_length = segment_ids.shape
    for row in range(batch):
        for document in range(sequence_length):
            begin, end = cu_seqlens[row, document], cu_seqlens[row, document + 1]
            segment_ids[row, begin:end] = document + 1
            if end == sequence_length:
                break
        segment_ids[row, row_lengths[row] :] = 0
