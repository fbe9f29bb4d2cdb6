"""Which token begins a word and which continues one."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coredata._typing import Int64, UInt8

UNKNOWN, BEGINS, CONTINUES = 0, 1, 2

WORDPIECE_MARK = "##"
"""What WordPiece puts before a piece that continues a word."""


@dataclass(frozen=True, eq=False)
class WordTable:
    """What masking knows of a vocabulary.

    Attributes:
        kinds: by id: 0 for no token, 1 for a piece that begins a word, 2 for one that continues it.
        ids: all ids, ascending; random replacements are drawn from them.
    """

    kinds: UInt8[np.ndarray, " ids_to_the_largest"]
    ids: Int64[np.ndarray, " tokens"]

    @classmethod
    def of(cls, vocabulary: Mapping[int, str], word_start: str | None = None) -> "WordTable":
        """Sort the pieces of a vocabulary, id -> text.

        With `word_start` None a piece that starts with "##" continues a word (WordPiece); else
        every piece continues one that does not start with `word_start` ("▁" of SentencePiece, "Ġ"
        of byte-level BPE).

        Raises:
            ValueError: a vocabulary without tokens, or a negative id.
        """
        ids = np.array(sorted(vocabulary), np.int64)
        if not ids.size or ids[0] < 0:
            raise ValueError(
                f"vocabulary: {ids.size} tokens"
                + (f", the lowest with id {ids[0]}" if ids.size else "")
                + "; need at least one, with ids from 0 on"
            )
        kinds = np.zeros(int(ids[-1]) + 1, np.uint8)
        for number, piece in vocabulary.items():
            if word_start is None:
                continues = piece.startswith(WORDPIECE_MARK)
            else:
                continues = not piece.startswith(word_start)
            kinds[number] = CONTINUES if continues else BEGINS
        return cls(kinds, ids)

    def count(self, kind: int) -> int:
        """How many tokens are of a kind."""
        return int((self.kinds[self.ids] == kind).sum())
