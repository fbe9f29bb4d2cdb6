"""Masking the tokens of one sample, n-gram by n-gram."""

import numpy as np

from coredata._kernel import kernel
from coredata.masking.draws import draw_below, draw_share, draw_size, shuffle_first
from coredata.masking.words import CONTINUES, UNKNOWN

LEFT, FIRST, FURTHER, PERMUTED = 0, 1, 2, 3
"""Marks: a token that stays, the first of a masked n-gram, another of it, one that was moved."""


@kernel
def most_maskings(length, target, probability):
    """How many tokens may be masked, as the reference counts: a float, and perhaps below 1."""
    return min(probability * np.float64(target), max(1.0, np.rint(length * probability)))


@kernel
def mask_tokens(
    tokens,
    most,
    kinds,
    ids,
    cutoffs,
    cls,
    sep,
    mask,
    full_words,
    permute,
    replace,
    state,
    positions,
    starts,
    order,
    masked,
    marks,
):
    """Mask a sample; return -1, or the position of a token that the vocabulary lacks.

    Words that may be masked ("candidates") are the tokens but `cls` and `sep`, pieces joined to
    the word before them with `full_words`. They are visited in random order; from each the n-gram
    of it and the words after it is masked whole, made shorter where `most` masked tokens leave no
    room, or left out where it has no room or was touched before.

    With `replace` a masked token becomes `mask` four times in five, a token of `ids` or itself
    one time in ten each; else always `mask`. With `permute` as many tokens more, in n-grams found
    likewise, change places among each other.

    `positions`, `starts` and `order` are scratch (starts one longer than tokens). `masked` and
    `marks` are filled, as long as `tokens`.
    """
    count = np.int64(0)
    words = np.int64(0)
    for i in range(tokens.size):
        token = tokens[i]
        masked[i] = token
        marks[i] = LEFT
        if token in (cls, sep):
            continue
        if token < 0 or token >= kinds.size or kinds[token] == UNKNOWN:
            return np.int64(i)
        if not (full_words and kinds[token] == CONTINUES and words > 0):
            order[words] = words
            starts[words] = count
            words += 1
        positions[count] = i
        count += 1
    starts[words] = count
    shuffle_first(order, words, state)
    done = np.int64(0)
    for visited in range(words):
        if done >= most:
            break
        size = draw_size(state, cutoffs)
        begin, end = _fit(order[visited], size, words, starts, most - done)
        if begin == end or not _untouched(positions, begin, end, marks):
            continue
        for q in range(begin, end):
            at = positions[q]
            marks[at] = FIRST if q == begin else FURTHER
            if not replace or draw_share(state) < 0.8:
                masked[at] = mask
            elif draw_share(state) >= 0.5:
                masked[at] = ids[draw_below(state, ids.size)]
        done += end - begin
    if permute:
        _permute(tokens, most, words, cutoffs, state, positions, starts, order, masked, marks)
    return np.int64(-1)


@kernel
def _fit(first, size, words, starts, room):
    """The n-gram of at most `size` words from `first` on, of at most `room` tokens, or (0, 0)."""
    begin = starts[first]
    while size > 0:
        end = starts[min(first + size, words)]
        if room >= end - begin:
            return begin, end
        size -= 1
    return np.int64(0), np.int64(0)


@kernel
def _untouched(positions, begin, end, marks):
    moved = np.int64(0)
    for q in range(begin, end):
        moved += marks[positions[q]] != LEFT
    return moved == 0


@kernel
def _permute(tokens, most, words, cutoffs, state, positions, starts, order, masked, marks):
    """Choose n-grams as for masking, then let all their tokens change places at random.

    The reference draws the sizes of these n-grams from numpy's global generator; here they are
    drawn from the sample's own, so that a sample is the same whenever it is read.
    """
    shuffle_first(order, words, state)
    done = np.int64(0)
    for visited in range(words):
        if done >= most:
            break
        size = draw_size(state, cutoffs)
        begin, end = _fit(order[visited], size, words, starts, most - done)
        if begin == end or not _untouched(positions, begin, end, marks):
            continue
        for q in range(begin, end):
            marks[positions[q]] = PERMUTED
        done += end - begin
    chosen = np.int64(0)
    for q in range(starts[words]):
        if marks[positions[q]] == PERMUTED:
            order[chosen] = positions[q]
            chosen += 1
    shuffle_first(order, chosen, state)
    taken = np.int64(0)
    for q in range(starts[words]):
        if marks[positions[q]] == PERMUTED:
            masked[positions[q]] = tokens[order[taken]]
            taken += 1
