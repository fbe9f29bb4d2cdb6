"""Samples of BERT and T5 once more, in plain loops over numpy's RandomState: to compare with."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from coredata.masking import BertMasking, MaskingSettings, T5Masking, WordTable
from coredata.masking.words import CONTINUES

Tokens = list[int]


@dataclass(frozen=True)
class Masked:
    """What masking makes of tokens: `labels` and `spans` say what was where."""

    tokens: Tokens
    labels: dict[int, int]
    spans: list[Tokens]
    """Positions of each masked n-gram; by the first of them."""


def reference_bert_sample(
    sentences: Sequence[Tokens], target: int, seed: int, masking: BertMasking
) -> dict[str, Any]:
    """The BERT sample of some sentences, cut to `target` tokens; see `BertMasking.fill`."""
    random = np.random.RandomState(seed)
    ids, length = masking.ids, masking.sequence_length
    pivot, swapped = len(sentences), False
    if masking.classification_head:
        pivot = random.randint(1, len(sentences)) if len(sentences) >= 3 else 1
        swapped = random.random() < 0.5
    halves = [list(chain(*sentences[:pivot])), list(chain(*sentences[pivot:]))]
    if swapped:
        halves.reverse()
    first, second = halves
    truncated = len(first) + len(second) > target
    while len(first) + len(second) > target:
        longer = first if len(first) > len(second) else second
        del longer[0 if random.random() < 0.5 else -1]
    tokens = [ids.cls, *first, ids.sep, *([*second, ids.sep] if second else [])]
    types = [0] * (len(first) + 2) + [1] * (len(tokens) - len(first) - 2)
    masked = reference_masking(
        tokens, target, random, masking.settings, masking.words, (ids.cls, ids.sep), ids.mask, True
    )
    pads = length - len(tokens)
    text = masked.tokens + [ids.pad] * pads
    labels = [masked.labels.get(position, -1) for position in range(length)]
    return {
        "text": [0 if token == ids.pad else token for token in text],
        "types": types + [ids.pad] * pads,
        "labels": [0 if label == ids.pad else label for label in labels],
        "is_random": int(swapped),
        "padding_mask": [ids.pad if token == ids.pad else 1 for token in text],
        "loss_mask": [int(position in masked.labels) for position in range(length)],
        "truncated": int(truncated),
    }


def reference_t5_sample(
    sentences: Sequence[Tokens], target: int, seed: int, masking: T5Masking
) -> dict[str, Any]:
    """The T5 sample of some sentences, cut to `target` tokens; see `T5Masking.fill`."""
    ids = masking.ids
    whole = list(chain(*sentences))
    tokens = whole[:target]
    masked = reference_masking(
        tokens,
        target,
        np.random.RandomState(seed),
        masking.settings,
        masking.words,
        (ids.cls, ids.sep),
        ids.mask,
        False,
    )
    encoder, moved, copied = [], [], 0
    for sentinel, span in zip(ids.sentinels, masked.spans, strict=False):
        encoder += [*masked.tokens[copied : span[0]], sentinel]
        moved += [sentinel, *(tokens[position] for position in span)]
        copied = span[-1] + 1
    encoder += masked.tokens[copied:]
    decoder, labels = [ids.bos, *moved], [*moved, ids.eos]
    encoder += [ids.pad] * (masking.encoder_length - len(encoder))
    pads = masking.decoder_length - len(decoder)
    loss_mask = [1] * len(decoder) + [0] * pads
    decoder += [ids.pad] * pads
    labels += [-1] * pads

    def unpadded(values: Tokens) -> Tokens:
        return [0 if value == ids.pad else value for value in values]

    return {
        "text_enc": unpadded(encoder),
        "text_dec": unpadded(decoder),
        "labels": unpadded(labels),
        "loss_mask": loss_mask,
        "truncated": int(len(whole) > target),
        "enc_mask": [int(token != ids.pad) for token in encoder],
        "dec_mask": [int(token != ids.pad) for token in decoder],
    }


def reference_masking(
    tokens: Tokens,
    target: int,
    random: np.random.RandomState,
    settings: MaskingSettings,
    words: WordTable,
    untouchable: tuple[int, int],
    mask: int,
    replace: bool,
) -> Masked:
    """Mask `tokens`, with all draws of `random`."""
    candidates: list[Tokens] = []
    for position, token in enumerate(tokens):
        if token in untouchable:
            continue
        if settings.full_words and candidates and words.kinds[token] == CONTINUES:
            candidates[-1].append(position)
        else:
            candidates.append([position])
    most = min(settings.probability * target, max(1, round(len(tokens) * settings.probability)))
    sizes = range(1, settings.max_ngram + 1)
    ngrams = [
        [list(chain(*candidates[i : i + size])) for size in sizes] for i in range(len(candidates))
    ]
    random.shuffle(ngrams)
    masked, spans = list(tokens), []
    labels: dict[int, int] = {}
    for span in _chosen(ngrams, most, random, settings, labels):
        for position in span:
            labels[position] = tokens[position]
            masked[position] = _replacement(tokens[position], mask, words, random, replace)
        spans.append(span)
    random.shuffle(ngrams)
    if settings.permute:
        moved: dict[int, int] = {}
        for span in _chosen(ngrams, most, random, settings, moved, labels):
            moved.update((position, tokens[position]) for position in span)
        places = sorted(moved)
        taken = list(places)
        random.shuffle(taken)
        for place, other in zip(places, taken, strict=True):
            masked[place] = tokens[other]
        labels |= moved
    return Masked(masked, labels, sorted(spans))


def _chosen(
    ngrams: list[list[Tokens]],
    most: int | float,
    random: np.random.RandomState,
    settings: MaskingSettings,
    taken: dict[int, int],
    others: dict[int, int] | None = None,
) -> Any:
    """The n-grams to use, one after the other; the caller adds their positions to `taken`."""
    for of_candidate in ngrams:
        if len(taken) >= most:
            return
        size = _size(random, settings)
        while size and len(of_candidate[size - 1]) + len(taken) > most:
            size -= 1
        span = of_candidate[size - 1] if size else []
        if span and not any(place in taken or place in (others or {}) for place in span):
            yield span


def _size(random: np.random.RandomState, settings: MaskingSettings) -> int:
    if settings.geometric:
        return int(min(random.geometric(0.2), settings.max_ngram))
    sizes = np.arange(1, settings.max_ngram + 1)
    chances = 1.0 / sizes
    chances /= chances.sum()
    if settings.longer_ngrams:
        chances = chances[::-1]
    return int(random.choice(sizes, p=chances / chances.sum()))


def _replacement(
    token: int, mask: int, words: WordTable, random: np.random.RandomState, replace: bool
) -> int:
    if not replace or random.random() < 0.8:
        return mask
    if random.random() >= 0.5:
        return int(words.ids[random.randint(0, len(words.ids))])
    return token
