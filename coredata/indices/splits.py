"""Train, valid and test: which share of a file each one covers."""

import itertools
import math
import re
from collections.abc import Sequence
from enum import Enum

Bookends = tuple[int | float, int | float]
"""Where a split begins and ends, as shares of the whole: 0 <= begin < end <= 1."""

_SEPARATOR = re.compile(r"\s*[,/]\s*|\s+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_EXAMPLES = "Write for example '969,30,1' or '80/20': shares of train, valid, test"


class Split(Enum):
    """The three parts of a training corpus, numbered as everywhere in the field."""

    train = 0
    valid = 1
    test = 2


def parse_and_normalize_split(split: str) -> list[float]:
    """Read a split string such as "969, 30, 1" or "80/20".

    Up to three non-negative numbers, separated by commas, slashes or blanks, for train, valid and
    test; missing ones are 0. A number may have a point and an exponent ("1e2" is 100).

    Returns:
        Three shares that sum to 1.

    Raises:
        ValueError: anything that is not a number, a negative or infinite number, more than three
            of them, or nothing but zeros. (Megatron-LM picks the digits out of the text instead.)
    """
    fields = _SEPARATOR.split(split.strip())
    shares = [_share(field, split) for field in fields]
    if len(shares) > len(Split):
        raise ValueError(
            f"split: {split!r} has {len(shares)} numbers, but there are {len(Split)} splits. "
            f"{_EXAMPLES}"
        )
    total = sum(shares)
    if total == 0:
        raise ValueError(f"split: all shares in {split!r} are zero. {_EXAMPLES}")
    if not math.isfinite(total):
        raise ValueError(f"split: the shares in {split!r} sum to {total}. {_EXAMPLES}")
    shares += [0.0] * (len(Split) - len(shares))
    return [share / total for share in shares]


def _share(field: str, split: str) -> float:
    if not _NUMBER.fullmatch(field):
        raise ValueError(f"split: {field!r} in {split!r} is not a finite number. {_EXAMPLES}")
    share = float(field)
    if share < 0:
        raise ValueError(f"split: {field!r} in {split!r} is negative. {_EXAMPLES}")
    if not math.isfinite(share):
        raise ValueError(f"split: {field!r} in {split!r} is not a finite number. {_EXAMPLES}")
    return abs(share)


def convert_split_vector_to_split_matrix(
    vector_a: Sequence[int | float], vector_b: Sequence[int | float] | None = None
) -> list[Bookends | None]:
    """Turn shares into where each split begins and ends.

    [0.99, 0.01, 0.0] becomes [(0, 0.99), (0.99, 1.0), None]: running sums, None for a split without
    a share. With a second vector, each split covers what both vectors give it.

    The first begin is the integer 0, as in Megatron-LM: it is written into cache descriptions.
    """
    if vector_b is None:
        vector_b = vector_a
    matrix: list[Bookends | None] = []
    for bookends_a, bookends_b in zip(_bookends(vector_a), _bookends(vector_b), strict=True):
        begin = max(bookends_a[0], bookends_b[0])
        end = min(bookends_a[1], bookends_b[1])
        matrix.append((begin, end) if begin < end else None)
    return matrix


def _bookends(vector: Sequence[int | float]) -> list[Bookends]:
    return list(itertools.pairwise(itertools.accumulate(vector, initial=0)))


def split_range(bookends: Bookends, elements: int) -> tuple[int, int]:
    """First and one-past-last element of a split of a file with `elements` elements.

    Both ends are rounded as Python rounds (halves to even), so that neighbouring splits meet.
    """
    begin, end = bookends
    return min(round(begin * elements), elements), min(round(end * elements), elements)
