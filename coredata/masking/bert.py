"""BERT samples: two halves, cut to length, joined, masked."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from coredata._kernel import kernel
from coredata._typing import Int64
from coredata.indices.mt19937 import WORDS, restart
from coredata.masking.draws import draw_below, draw_share
from coredata.masking.ngrams import LEFT, mask_tokens, most_maskings
from coredata.masking.sentences import SampleSentences, read_only, unknown_token
from coredata.masking.settings import MaskingSettings
from coredata.masking.words import WordTable

SPECIAL_TOKENS = 3
"""Of a sample: one before the first half, one after each."""

_SEQUENCE_FIELDS = ("text", "types", "labels", "padding_mask", "loss_mask")
_UNKNOWN_TOKEN, _TOO_FEW_SENTENCES = 1, 2


@dataclass(frozen=True)
class BertIds:
    """Ids that samples need; `pad` may be -1 for none."""

    cls: int
    sep: int
    mask: int
    pad: int


@dataclass(frozen=True, eq=False)
class BertMasking:
    """What a BERT sample follows from, beside its sentences.

    Attributes:
        sequence_length: S, special tokens included.
        classification_head: whether samples are two halves, one time in two in the wrong order.
        settings: how much is masked, and in what pieces.
        words: the vocabulary.
        ids: special ids.
    """

    sequence_length: int
    classification_head: bool
    settings: MaskingSettings
    words: WordTable
    ids: BertIds

    def fields(self, batch: int) -> Mapping[str, tuple[tuple[int, ...], DTypeLike]]:
        """Name -> shape and dtype of the arrays that `fill` wants."""
        rows = {name: ((batch, self.sequence_length), np.int64) for name in _SEQUENCE_FIELDS}
        counts = {name: ((batch,), np.int64) for name in ("is_random", "truncated")}
        names = ("text", "types", "labels", "is_random", "padding_mask", "loss_mask", "truncated")
        return {name: {**rows, **counts}[name] for name in names}

    def fill(self, samples: SampleSentences, out: Mapping[str, Int64[np.ndarray, "..."]]) -> None:
        """Make all samples.

        - `text`: cls, first half, sep, second half, sep; some tokens masked; 0 where padded
        - `types`: 0 up to the first sep, 1 behind it, the pad id where padded
        - `labels`: what was masked, else -1
        - `is_random`: whether the halves are in the wrong order
        - `padding_mask`: 1, the pad id where padded
        - `loss_mask`: 1 where masked
        - `truncated`: whether tokens were left out

        A token of the text that is the pad id counts as padding in `padding_mask`, and, as all
        pad ids, becomes 0.

        Raises:
            ValueError: a token that the vocabulary lacks; with the head, a sample of one sentence.
        """
        ids = self.ids
        code, row, value = _fill(
            read_only(samples.tokens),
            read_only(samples.lengths),
            read_only(samples.row_splits),
            read_only(samples.targets),
            read_only(samples.seeds),
            read_only(self.words.kinds),
            read_only(self.words.ids),
            read_only(self.settings.cutoffs),
            self.classification_head,
            self.settings.full_words,
            self.settings.permute,
            np.float64(self.settings.probability),
            np.array([ids.cls, ids.sep, ids.mask, ids.pad], np.int64),
            *(out[name] for name in _SEQUENCE_FIELDS),
            out["is_random"],
            out["truncated"],
        )
        if code == _UNKNOWN_TOKEN:
            number = int(samples.numbers[row])
            raise unknown_token(number, int(value), self.words.kinds.size - 1)
        if code == _TOO_FEW_SENTENCES:
            raise ValueError(
                f"sample {samples.numbers[row]}: it has {value} sentence, but classification_head "
                "is on, which wants two. Build the sentence map again"
            )


@kernel
def _fill(
    tokens,
    lengths,
    row_splits,
    targets,
    seeds,
    kinds,
    ids,
    cutoffs,
    head,
    full_words,
    permute,
    probability,
    special,
    text,
    types,
    labels,
    padding_mask,
    loss_mask,
    is_random,
    truncated,
):
    """Fill all fields; return (0, 0, 0), or an error code, the row, and what was found."""
    width = text.shape[1]
    cls, sep, mask, pad = special[0], special[1], special[2], special[3]
    state = np.empty(WORDS + 1, np.uint32)
    original = np.empty(width, np.int64)
    positions = np.empty(width, np.int64)
    starts = np.empty(width + 1, np.int64)
    order = np.empty(width, np.int64)
    marks = np.empty(width, np.int64)
    begin = np.int64(0)
    for row in range(targets.size):
        restart(state, seeds[row])
        first, last = row_splits[row], row_splits[row + 1]
        pivot = last - first
        swapped = False
        if head:
            if pivot < 2:
                return _TOO_FEW_SENTENCES, row, pivot
            pivot = np.int64(1)
            if last - first >= 3:
                pivot = 1 + draw_below(state, last - first - 1)
            swapped = draw_share(state) < 0.5
        middle = begin
        for sentence in range(first, first + pivot):
            middle += lengths[sentence]
        end = middle
        for sentence in range(first + pivot, last):
            end += lengths[sentence]
        a, a_end, b, b_end = begin, middle, middle, end
        if swapped:
            a, a_end, b, b_end = middle, end, begin, middle
        begin = end
        is_random[row] = swapped
        truncated[row] = a_end - a + b_end - b > targets[row]
        while a_end - a + b_end - b > targets[row]:
            from_front = draw_share(state) < 0.5
            if a_end - a > b_end - b:
                if from_front:
                    a += 1
                else:
                    a_end -= 1
            elif from_front:
                b += 1
            else:
                b_end -= 1
        count = _join(tokens, a, a_end, b, b_end, cls, sep, original, types[row])
        types[row, count:] = pad
        bad = mask_tokens(
            original[:count],
            most_maskings(count, targets[row], probability),
            kinds,
            ids,
            cutoffs,
            cls,
            sep,
            mask,
            full_words,
            permute,
            True,
            state,
            positions,
            starts,
            order,
            text[row],
            marks,
        )
        if bad >= 0:
            return _UNKNOWN_TOKEN, row, original[bad]
        for i in range(count):
            touched = marks[i] != LEFT
            loss_mask[row, i] = touched
            label = original[i] if touched else np.int64(-1)
            labels[row, i] = np.int64(0) if label == pad else label
            padding_mask[row, i] = 1
            if text[row, i] == pad:
                padding_mask[row, i] = pad
                text[row, i] = 0
        text[row, count:] = 0
        labels[row, count:] = 0 if pad == -1 else -1
        padding_mask[row, count:] = pad
        loss_mask[row, count:] = 0
    return 0, 0, np.int64(0)


@kernel
def _join(tokens, a, a_end, b, b_end, cls, sep, out, types):
    """cls, the first half, sep, and, if it has tokens, the second half, sep; their number."""
    out[0] = cls
    types[0] = 0
    count = np.int64(1)
    for i in range(a, a_end):
        out[count] = tokens[i]
        types[count] = 0
        count += 1
    out[count] = sep
    types[count] = 0
    count += 1
    if b_end > b:
        for i in range(b, b_end):
            out[count] = tokens[i]
            types[count] = 1
            count += 1
        out[count] = sep
        types[count] = 1
        count += 1
    return count
