"""Fill-in-the-middle permutations of tokenised text, as pure functions.

A sample is cut at its end-of-document ids; pieces of it are decoded, cut in three at random places
and put together again as prefix, suffix, middle (PSM) or suffix, prefix, middle (SPM). The method
is that of Bavarian et al., "Efficient Training of Language Models to Fill in the Middle" (2022);
order and number of the random draws are Megatron-LM's.
"""

from coredata.fim.options import (
    DEFAULT_TOKENS,
    FIMOptions,
    FIMTokenIds,
    FIMTokenizer,
    FIMTokens,
    FIMVocabularyError,
)
from coredata.fim.randomness import Draws, SampleDraws
from coredata.fim.transform import Infilling, Permuted

__all__ = [
    "DEFAULT_TOKENS",
    "Draws",
    "FIMOptions",
    "FIMTokenIds",
    "FIMTokenizer",
    "FIMTokens",
    "FIMVocabularyError",
    "Infilling",
    "Permuted",
    "SampleDraws",
]
