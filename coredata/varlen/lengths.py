"""Lengths of made-up samples: drawn, or listed in a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Int64

MODES = ("distribution", "file", "verification")
DRAWN = 1_000_000
"""How many lengths are drawn; samples beyond begin again with the first."""

_SEED = 0
_NUMBERS = ("min_seq_len", "max_seq_len", "mean_seq_len", "lognormal_sigma")
_OTHER = ("mode", "type", "path", "data_path", "format")


@dataclass(frozen=True)
class MockLengths:
    """Where the lengths of made-up samples come from.

    Attributes:
        mode: "distribution" draws them; "file" reads them from `path`; "verification" draws them,
            and tokens come from the token files at `data_path`.
        min_seq_len: the least.
        max_seq_len: the most.
        mean_seq_len: mean of the distribution, before it is clipped.
        lognormal_sigma: its spread.
        path: a file with one length a line, under a header.
        data_path: prefix of token files.
        format: "thd", samples of varying length, or "sbhd", padded to a fixed one.

    Raises:
        ValueError: a field out of range or missing.
    """

    min_seq_len: int
    max_seq_len: int
    mean_seq_len: int | float
    lognormal_sigma: int | float = 1.1
    mode: str = "distribution"
    path: str | None = None
    data_path: str | None = None
    format: str = "thd"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode: got {self.mode!r}, need one of {', '.join(MODES)}")
        if self.format not in ("thd", "sbhd"):
            raise ValueError(f'format: got {self.format!r}, need "thd" or "sbhd"')
        if self.mode == "file" and not self.path:
            raise ValueError('path: missing, but mode "file" reads lengths from it')
        if self.mode == "verification" and not self.data_path:
            raise ValueError('data_path: missing, but mode "verification" reads tokens from it')
        if not 1 <= self.min_seq_len <= self.max_seq_len:
            raise ValueError(
                f"min_seq_len, max_seq_len: got {self.min_seq_len} and {self.max_seq_len}, need 1 "
                "or more, the least first"
            )
        if not self.mean_seq_len > 0 or not self.lognormal_sigma >= 0:
            raise ValueError(
                f"mean_seq_len, lognormal_sigma: got {self.mean_seq_len} and "
                f"{self.lognormal_sigma}, need a mean above 0 and a spread of at least 0"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any] | None, sequence_length: int) -> "MockLengths":
        """Options as a configuration gives them; what is missing follows from S.

        Raises:
            ValueError: an unknown option, a distribution other than "lognormal", a number that is
                none, or a value out of range.
        """
        given = dict(options or {})
        unknown = sorted(given.keys() - {*_NUMBERS, *_OTHER})
        if unknown:
            raise ValueError(
                f"mock data have no option {', '.join(map(repr, unknown))}; known are "
                f"{', '.join([*_OTHER, *_NUMBERS])}"
            )
        for name in _NUMBERS:
            value = given.get(name, 1)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{name}: got {value!r}, need a number")
        kind = given.pop("type", "lognormal")
        if kind != "lognormal":
            raise ValueError(f'type: got {kind!r}, need "lognormal"')
        defaults = {
            "min_seq_len": max(sequence_length // 2, 1),
            "max_seq_len": sequence_length,
            "mean_seq_len": max(sequence_length // 4, 1) * 3,
        }
        return cls(**{**defaults, **given})

    def draw(self) -> Int64[np.ndarray, " samples"]:
        """`DRAWN` lengths from a clipped log-normal distribution; the same in every process."""
        mean = np.log(self.mean_seq_len) - self.lognormal_sigma**2 / 2
        drawn = np.random.RandomState(_SEED).lognormal(mean, self.lognormal_sigma, DRAWN)
        return np.clip(drawn, self.min_seq_len, self.max_seq_len).astype(np.int64)


def parse_lengths(text: str, source: str) -> Int64[np.ndarray, " samples"]:
    """Lengths from text with a header and then one length a line; blank lines mean nothing.

    Raises:
        ValueError: a line that is no length, or no lengths; it names `source` and the line.
    """
    lengths = []
    for number, line in enumerate(text.splitlines()[1:], start=2):
        value = line.strip()
        if not value:
            continue
        if not value.isascii() or not value.isdecimal() or int(value) < 1:
            raise ValueError(
                f"{source}, line {number}: {value[:40]!r} is no length; below a header, each line "
                "holds one whole number of at least 1"
            )
        lengths.append(int(value))
    if not lengths:
        raise ValueError(
            f"{source} holds no lengths; below a header, each line holds one, such as 512"
        )
    return np.array(lengths, np.int64)
