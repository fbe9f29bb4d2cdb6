"""T5 samples: masked spans move from the encoder's input to the decoder's."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from coredata._kernel import kernel
from coredata._typing import Int64
from coredata.indices.mt19937 import WORDS, restart
from coredata.masking.ngrams import FIRST, FURTHER, mask_tokens, most_maskings
from coredata.masking.sentences import SampleSentences, read_only, unknown_token
from coredata.masking.settings import MaskingSettings
from coredata.masking.words import WordTable

SPECIAL_TOKENS = 2
"""Taken off the length of a sample, for a start and an end."""

_UNKNOWN_TOKEN, _TOO_FEW_SENTINELS, _DECODER_TOO_SHORT = 1, 2, 3


@dataclass(frozen=True)
class T5Ids:
    """Ids that samples need. `cls`, `sep`, `mask` and `pad` may be -1 for none.

    `sentinels` stand for masked spans, in this order.
    """

    bos: int
    eos: int
    cls: int
    sep: int
    mask: int
    pad: int
    sentinels: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class T5Masking:
    """What a T5 sample follows from, beside its sentences.

    Attributes:
        encoder_length: tokens of the encoder's input.
        decoder_length: tokens of the decoder's input.
        settings: how much is masked, and in what pieces.
        words: the vocabulary.
        ids: special ids.
    """

    encoder_length: int
    decoder_length: int
    settings: MaskingSettings
    words: WordTable
    ids: T5Ids

    def fields(self, batch: int) -> Mapping[str, tuple[tuple[int, ...], DTypeLike]]:
        """Name -> shape and dtype of the arrays that `fill` wants."""
        encoder, decoder = (batch, self.encoder_length), (batch, self.decoder_length)
        return {
            "text_enc": (encoder, np.int64),
            "text_dec": (decoder, np.int64),
            "labels": (decoder, np.int64),
            "loss_mask": (decoder, np.int64),
            "truncated": ((batch,), np.int64),
            "enc_mask": (encoder, np.int64),
            "dec_mask": (decoder, np.int64),
        }

    def fill(self, samples: SampleSentences, out: Mapping[str, Int64[np.ndarray, "..."]]) -> None:
        """Make all samples.

        - `text_enc`: the tokens, each masked span replaced by a sentinel; 0 where padded
        - `text_dec`: bos, then each sentinel and its span; 0 where padded
        - `labels`: each sentinel and its span, then eos; -1 where padded
        - `loss_mask`: 1 where there are labels
        - `truncated`: whether tokens were left out
        - `enc_mask`, `dec_mask`: 1, 0 where padded

        A token of the text that is the pad id counts as padding in the masks, and, as all pad
        ids, becomes 0.

        Raises:
            ValueError: a token that the vocabulary lacks, more masked spans than sentinels, or a
                decoder's input longer than `decoder_length`.
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
            self.settings.full_words,
            self.settings.permute,
            np.float64(self.settings.probability),
            np.array([ids.bos, ids.eos, ids.cls, ids.sep, ids.mask, ids.pad], np.int64),
            read_only(np.array(ids.sentinels, np.int64)),
            *(out[f] for f in ("text_enc", "text_dec", "labels", "loss_mask")),
            *(out[f] for f in ("enc_mask", "dec_mask")),
        )
        np.greater(samples.whole, samples.targets, out=out["truncated"], casting="unsafe")
        if code:
            raise self._error(int(code), int(samples.numbers[row]), int(value))

    def _error(self, code: int, sample: int, value: int) -> ValueError:
        if code == _UNKNOWN_TOKEN:
            return unknown_token(sample, value, self.words.kinds.size - 1)
        most = self.settings.most_masked(self.encoder_length - SPECIAL_TOKENS)
        if code == _TOO_FEW_SENTINELS:
            return ValueError(
                f"sample {sample}: it has {value} masked spans, but the tokenizer has "
                f"{len(self.ids.sentinels)} sentinels (additional_special_tokens_ids). {most} "
                "sentinels are enough for any sample; or mask less, or longer spans: a lower "
                "masking_probability, a higher masking_max_ngram"
            )
        return ValueError(
            f"sample {sample}: its decoder input has {value} tokens, but sequence_length_decoder "
            f"is {self.decoder_length}. {1 + 2 * most} are enough for any sample"
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
    full_words,
    permute,
    probability,
    special,
    sentinels,
    text_enc,
    text_dec,
    labels,
    loss_mask,
    enc_mask,
    dec_mask,
):
    """Fill all fields; return (0, 0, 0), or an error code, the row, and what was found."""
    width = text_enc.shape[1]
    bos, eos, cls, sep = special[0], special[1], special[2], special[3]
    mask, pad = special[4], special[5]
    state = np.empty(WORDS + 1, np.uint32)
    masked = np.empty(width, np.int64)
    positions = np.empty(width, np.int64)
    starts = np.empty(width + 1, np.int64)
    order = np.empty(width, np.int64)
    marks = np.empty(width, np.int64)
    spans = np.empty(2 * width + 1, np.int64)
    begin = np.int64(0)
    for row in range(targets.size):
        restart(state, seeds[row])
        end = begin
        for sentence in range(row_splits[row], row_splits[row + 1]):
            end += lengths[sentence]
        original = tokens[begin : begin + min(end - begin, targets[row])]
        begin = end
        bad = mask_tokens(
            original,
            most_maskings(original.size, targets[row], probability),
            kinds,
            ids,
            cutoffs,
            cls,
            sep,
            mask,
            full_words,
            permute,
            False,
            state,
            positions,
            starts,
            order,
            masked,
            marks,
        )
        if bad >= 0:
            return _UNKNOWN_TOKEN, row, original[bad]
        kept, moved, found = _part(original, masked, marks, sentinels, text_enc[row], spans)
        if found > sentinels.size:
            return _TOO_FEW_SENTINELS, row, found
        if moved + 1 > text_dec.shape[1]:
            return _DECODER_TOO_SHORT, row, moved + 1
        _pad(text_enc[row], kept, enc_mask[row], pad)
        text_dec[row, 0] = bos
        text_dec[row, 1 : moved + 1] = spans[:moved]
        _pad(text_dec[row], moved + 1, dec_mask[row], pad)
        spans[moved] = eos
        labels[row, : moved + 1] = spans[: moved + 1]
        labels[row, moved + 1 :] = -1
        loss_mask[row, : moved + 1] = 1
        loss_mask[row, moved + 1 :] = 0
        for i in range(labels.shape[1]):
            if labels[row, i] == pad:
                labels[row, i] = 0
    return 0, 0, np.int64(0)


@kernel
def _part(original, masked, marks, sentinels, text_enc, spans):
    """Spread the tokens over the encoder's input and `spans`; return both lengths, and the spans.

    What lies between two tokens of a span (only a cls or sep can) is in neither.
    """
    kept = np.int64(0)
    moved = np.int64(0)
    found = np.int64(0)
    copied = np.int64(0)
    for i in range(original.size):
        if marks[i] != FIRST and marks[i] != FURTHER:
            continue
        if marks[i] == FIRST:
            for j in range(copied, i):
                text_enc[kept] = masked[j]
                kept += 1
            sentinel = sentinels[found] if found < sentinels.size else np.int64(-1)
            text_enc[kept] = sentinel
            kept += 1
            spans[moved] = sentinel
            moved += 1
            found += 1
        spans[moved] = original[i]
        moved += 1
        copied = np.int64(i) + 1
    for j in range(copied, original.size):
        text_enc[kept] = masked[j]
        kept += 1
    return kept, moved, found


@kernel
def _pad(text, count, mask, pad):
    """Pad after `count` tokens; the mask is 0 there and at pad ids, which become 0."""
    for i in range(text.size):
        mask[i] = i < count and text[i] != pad
        if mask[i] == 0:
            text[i] = 0
