"""What to permute and how often, and the ids that mark the parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np


class FIMVocabularyError(ValueError):
    """The tokenizer cannot name a token that infilling needs."""


@runtime_checkable
class FIMTokenizer(Protocol):
    """What infilling asks of a tokenizer. Every tokenizer of `coredata.text` meets it."""

    def encode_batch(self, texts: Sequence[str], /) -> tuple[np.ndarray, np.ndarray]:
        """All ids of all texts in a row, and how many ids each text has.

        No special token (BOS, EOS) may be added to a text.
        """
        ...

    def decode(self, ids: Any, /) -> str:
        """The text of `ids`; bytes that are no text (half a character) become U+FFFD."""
        ...

    def token_id(self, name: str, /) -> int | None:
        """The id of the token spelled `name`; None if the vocabulary has none."""
        ...


@dataclass(frozen=True)
class FIMTokens:
    """How the five special tokens are spelled in the vocabulary."""

    prefix: str = "<fim_prefix>"
    middle: str = "<fim_middle>"
    suffix: str = "<fim_suffix>"
    pad: str = "<fim_pad>"
    eod: str = "<|endoftext|>"

    @classmethod
    def of(cls, names: Mapping[str, str]) -> "FIMTokens":
        """From a mapping with the keys prefix, middle, suffix, pad and eod.

        Raises:
            ValueError: a key is missing or unknown.
        """
        wanted = [field.name for field in fields(cls)]
        if set(names) != set(wanted):
            raise ValueError(
                f"fim_extra_tokens needs exactly the keys {', '.join(wanted)}; "
                f"missing: {', '.join(sorted(set(wanted) - set(names))) or 'none'}, "
                f"unknown: {', '.join(sorted(set(names) - set(wanted))) or 'none'}. "
                f"Give e.g. {DEFAULT_TOKENS.as_dict()}."
            )
        return cls(**names)

    def as_dict(self) -> dict[str, str]:
        """Back to the mapping that `of` takes."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


DEFAULT_TOKENS = FIMTokens()
"""The spellings that Megatron-LM's command line has by default."""


@dataclass(frozen=True)
class FIMTokenIds:
    """The ids of the special tokens, and of the token that ends a fragment, if any."""

    prefix: int
    middle: int
    suffix: int
    pad: int
    eod: int
    split: int | None = None


@dataclass(frozen=True)
class FIMOptions:
    """The settings of the permutation; fields are named as in Megatron-LM.

    Attributes:
        fim_rate: probability that a piece (or, with `fim_split_sample`, a document) is permuted.
        fim_spm_rate: probability that a permuted piece is in the order suffix, prefix, middle.
        fim_extra_tokens: spellings of the special tokens.
        fim_split_sample: a token that ends a fragment (a file, say) of a document; fragments are
            then permuted one by one.
        fim_fragment_rate: probability that a fragment is permuted; needed with `fim_split_sample`.
        fim_no_prefix: a piece whose text starts with this is left as it is.
        truncate_or_pad: every piece keeps its own length: its suffix is cut or padded. Otherwise
            (as in Megatron-LM's dataset) only the sample as a whole keeps its length.

    Raises:
        ValueError: a rate that is no probability, a missing `fim_fragment_rate`, an empty
            `fim_no_prefix` or `fim_split_sample`.
    """

    fim_rate: int | float = 0.5
    fim_spm_rate: int | float = 0.5
    fim_extra_tokens: FIMTokens = DEFAULT_TOKENS
    fim_split_sample: str | None = None
    fim_fragment_rate: int | float | None = None
    fim_no_prefix: str | None = None
    truncate_or_pad: bool = False

    def __post_init__(self) -> None:
        _check_rate("fim_rate", self.fim_rate)
        _check_rate("fim_spm_rate", self.fim_spm_rate)
        if self.fim_fragment_rate is not None:
            _check_rate("fim_fragment_rate", self.fim_fragment_rate)
        elif self.fim_split_sample is not None:
            raise ValueError(
                f"fim_split_sample={self.fim_split_sample!r} cuts documents into fragments, but "
                "fim_fragment_rate, the probability that a fragment is permuted, is None. "
                "Give e.g. fim_fragment_rate=0.5."
            )
        for name in ("fim_no_prefix", "fim_split_sample"):
            if getattr(self, name) == "":
                raise ValueError(
                    f"{name} is an empty string, which every text has. "
                    f"Give a text, or {name}=None to do without."
                )

    def resolve(self, tokenizer: FIMTokenizer) -> FIMTokenIds:
        """Look the tokens up in the vocabulary of `tokenizer`.

        Raises:
            FIMVocabularyError: tokens that the vocabulary lacks (all of them are named), special
                tokens that share an id, or a `fim_split_sample` that is not one id.
        """
        names = self.fim_extra_tokens.as_dict()
        ids = {role: tokenizer.token_id(name) for role, name in names.items()}
        missing = [f"{role} {names[role]!r}" for role, found in ids.items() if found is None]
        if missing:
            raise FIMVocabularyError(
                f"The tokenizer's vocabulary lacks tokens that infilling needs: "
                f"{', '.join(missing)}. Add them to the tokenizer, or name tokens that it has, "
                f"e.g. fim_extra_tokens={names}."
            )
        found = {role: int(i) for role, i in ids.items() if i is not None}
        marks = [found[role] for role in ("prefix", "middle", "suffix", "eod")]
        if len(set(marks)) < len(marks):
            raise FIMVocabularyError(
                "The tokens prefix, middle, suffix and eod need four ids, but they are "
                f"{', '.join(map(str, marks))} (spelled {names}). "
                "Name a token of its own for each in fim_extra_tokens."
            )
        return FIMTokenIds(**found, split=self._split_id(tokenizer))

    def _split_id(self, tokenizer: FIMTokenizer) -> int | None:
        if self.fim_split_sample is None:
            return None
        known = tokenizer.token_id(self.fim_split_sample)
        if known is not None:
            return int(known)
        ids, _ = tokenizer.encode_batch([self.fim_split_sample])
        if len(ids) != 1:
            raise FIMVocabularyError(
                f"fim_split_sample={self.fim_split_sample!r} must be one token, but the tokenizer "
                f"makes {len(ids)} ids of it. Name a single token of its vocabulary, "
                "e.g. fim_split_sample='<file_sep>'."
            )
        return int(ids[0])


def _check_rate(name: str, rate: int | float) -> None:
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"{name} must be a probability from 0 to 1, found {rate}. Give e.g. 0.5.")
