"""From the text of a conversation to ids, with the characters that each id comes from."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from coredata._typing import Int64
from coredata.text.conversation_protocol import IGNORED
from coredata.text.protocol import Tokenizer


@runtime_checkable
class OffsetTokenizer(Tokenizer, Protocol):
    """A tokenizer that also says which characters a token comes from."""

    @property
    def special_vocabulary(self) -> Mapping[str, int]:
        """Text -> id of all special tokens."""
        ...

    def encode_with_offsets(
        self, text: str
    ) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, "tokens 2"]]:
        """Ids of one text, and the characters (start, stop) that each comes from."""
        ...


def encode_in_pieces(
    tokenizer: OffsetTokenizer, text: str, cuts: Sequence[int]
) -> tuple[Int64[np.ndarray, " tokens"], Int64[np.ndarray, "tokens 2"]]:
    """Ids of `text` and the characters they come from; no token reaches across a cut.

    Raises:
        LoneSurrogateError: the text has no UTF-8 form.
    """
    pieces = [
        (start, *tokenizer.encode_with_offsets(text[start:stop]))
        for start, stop in pairwise([0, *cuts, len(text)])
    ]
    ids = np.concatenate([ids for _, ids, _ in pieces])
    return ids, np.concatenate([offsets + start for start, _, offsets in pieces])


def with_one_bos(
    ids: Int64[np.ndarray, " tokens"],
    targets: Int64[np.ndarray, " tokens"],
    bos: int | None,
    add: bool,
) -> tuple[Int64[np.ndarray, " other"], Int64[np.ndarray, " other"]]:
    """Ids and targets with the BOSes that they begin with reduced to one; one put in if `add`.

    Those further on stay: some templates begin every turn with one.
    """
    if bos is None:
        return ids, targets
    leading = int(np.argmin(np.append(ids == bos, False)))
    if leading == 0 and add:
        return np.insert(ids, 0, bos), np.insert(targets, 0, IGNORED)
    drop = max(leading - 1, 0)
    return ids[drop:], targets[drop:]
