"""The permutation: plan all cuts of a batch of samples, tokenise their texts at once, assemble."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coredata._typing import Int64, Integer
from coredata.fim.options import FIMOptions, FIMTokenIds, FIMTokenizer
from coredata.fim.randomness import Draws


@dataclass(frozen=True, slots=True)
class Permuted:
    """A piece of text cut in three, and the order its parts go in."""

    prefix: str
    middle: str
    suffix: str
    spm: bool


Part = np.ndarray | Permuted
"""A part of a planned sample: ids that stay as they are, or a text to be put in another order."""


@dataclass(frozen=True)
class Infilling:
    """The transformation for one tokenizer.

    Build it with `Infilling.of`, which looks the ids up. Samples are 1-D arrays of ids of real
    text: padding ids that do not decode have no place in them.

    Attributes:
        options: the settings.
        ids: the ids of the tokens that they name.
        tokenizer: decodes pieces and encodes their parts.
        special_ids: ids that are no text; a piece that is permuted loses them.
    """

    options: FIMOptions
    ids: FIMTokenIds
    tokenizer: FIMTokenizer
    special_ids: tuple[int, ...]

    @classmethod
    def of(
        cls, options: FIMOptions, tokenizer: FIMTokenizer, special_ids: Iterable[int] = ()
    ) -> "Infilling":
        """Look up the tokens of `options`; they are special besides `special_ids`.

        Raises:
            FIMVocabularyError: a ValueError; the vocabulary lacks tokens.
        """
        ids = options.resolve(tokenizer)
        special = {*special_ids, ids.prefix, ids.middle, ids.suffix, ids.pad, ids.eod}
        return cls(options, ids, tokenizer, tuple(sorted(special)))

    def sample(self, sample: Integer[np.ndarray, " n"], draws: Draws) -> Int64[np.ndarray, " n"]:
        """One sample, permuted, cut on the right or padded to the length it had."""
        return self.batch([sample], [draws])[0]

    def batch(
        self, samples: Sequence[Integer[np.ndarray, " _"]], draws: Iterable[Draws]
    ) -> list[Int64[np.ndarray, " _"]]:
        """Several samples, their texts tokenised in one call.

        `draws` gives the random draws of each sample in turn. It is asked for those of a sample
        only after the sample before is planned: it may hand out one object again and again, going
        on with one stream (`itertools.repeat(state)`) or reset (`SampleDraws.at`).
        """
        plans = [self.plan(s, d) for s, d in zip(samples, draws, strict=False)]
        if len(plans) < len(samples):
            raise ValueError(f"{len(samples)} samples need as many draws, found {len(plans)}.")
        texts = [
            text
            for plan in plans
            for part in plan
            if isinstance(part, Permuted)
            for text in (part.prefix, part.middle, part.suffix)
        ]
        encoded = iter(_encode(self.tokenizer, texts))
        return [
            _fit(self._assemble(plan, encoded), len(sample), self.ids.pad)
            for plan, sample in zip(plans, samples, strict=True)
        ]

    def plan(self, sample: Integer[np.ndarray, " n"], draws: Draws) -> list[Part]:
        """Make all draws of a sample: what stays, and what is cut where.

        Cuts at every end-of-document id. An end-of-document id right after another (or at the
        start) is dropped; what follows the last one is a piece even if it is empty.
        """
        parts: list[Part] = []
        for segment, closed in _cut_at(sample, self.ids.eod):
            parts += self._segment(segment, draws)
            if closed:
                parts.append(np.array([self.ids.eod]))
        return parts

    def _segment(self, segment: np.ndarray, draws: Draws) -> list[Part]:
        options, split = self.options, self.ids.split
        if split is None or options.fim_fragment_rate is None or not (segment == split).any():
            return [self._piece(segment, options.fim_rate, draws)]
        if not draws.binomial(1, options.fim_rate):
            return [segment]
        parts: list[Part] = []
        for fragment, closed in _cut_at(segment, split):
            parts.append(self._piece(fragment, options.fim_fragment_rate, draws))
            if closed:
                parts.append(np.array([split]))
        return parts

    def _piece(self, piece: np.ndarray, rate: int | float, draws: Draws) -> Part:
        if not draws.binomial(1, rate):
            return piece
        text = self.tokenizer.decode(piece[~np.isin(piece, self.special_ids)])
        if self.options.fim_no_prefix is not None and text.startswith(self.options.fim_no_prefix):
            return piece
        first, second = sorted(draws.randint(0, len(text) + 1, size=2).tolist())
        cut = (text[:first], text[first:second], text[second:])
        if self.options.truncate_or_pad:
            return self._same_length(piece, cut, draws)
        return Permuted(*cut, spm=bool(draws.binomial(1, self.options.fim_spm_rate)))

    def _same_length(self, piece: np.ndarray, cut: tuple[str, str, str], draws: Draws) -> Part:
        """Permute `piece` within its own length.

        Whether the order is drawn at all depends on how many ids the suffix has to give, so this
        tokenises at once instead of with the batch.
        """
        prefix, middle, suffix = _encode(self.tokenizer, list(cut))
        excess = len(prefix) + len(middle) + len(suffix) + 3 - len(piece)
        if excess > 0:
            if len(suffix) <= excess:
                return piece
            suffix = suffix[:-excess]
        else:
            suffix = np.concatenate([suffix, np.full(-excess, self.ids.pad)])
        spm = bool(draws.binomial(1, self.options.fim_spm_rate))
        return np.concatenate(self._ordered(prefix, middle, suffix, spm))

    def _assemble(self, plan: list[Part], encoded: Iterator[np.ndarray]) -> list[np.ndarray]:
        out: list[np.ndarray] = []
        for part in plan:
            if isinstance(part, Permuted):
                out += self._ordered(next(encoded), next(encoded), next(encoded), part.spm)
            else:
                out.append(part)
        return out

    def _ordered(
        self, prefix: np.ndarray, middle: np.ndarray, suffix: np.ndarray, spm: bool
    ) -> list[np.ndarray]:
        ids = self.ids
        if spm:
            return [np.array([ids.prefix, ids.suffix]), suffix, _one(ids.middle), prefix, middle]
        return [_one(ids.prefix), prefix, _one(ids.suffix), suffix, _one(ids.middle), middle]


def _one(token: int) -> np.ndarray:
    return np.array([token])


def _cut_at(ids: np.ndarray, token: int) -> Iterator[tuple[np.ndarray, bool]]:
    """Pieces of `ids` between occurrences of `token`; True for those that one follows.

    An empty piece before an occurrence is left out, together with that occurrence; the piece after
    the last occurrence (all of `ids` if there is none) always comes.
    """
    start = 0
    for end in np.flatnonzero(ids == token).tolist():
        if end > start:
            yield ids[start:end], True
        start = end + 1
    yield ids[start:], False


def _encode(tokenizer: FIMTokenizer, texts: list[str]) -> list[np.ndarray]:
    if not texts:
        return []
    flat, lengths = tokenizer.encode_batch(texts)
    return np.split(flat, np.cumsum(lengths)[:-1])


def _fit(parts: list[np.ndarray], length: int, pad: int) -> Int64[np.ndarray, " length"]:
    """Concatenate `parts` into `length` ids: cut on the right, or filled with `pad`."""
    out = np.full(length, pad, dtype=np.int64)
    start = 0
    for part in parts:
        end = min(start + len(part), length)
        out[start:end] = part[: end - start]
        start = end
    return out
