"""Samples to pass over, as if the order did not contain them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coredata._typing import Int64, Integer
from coredata.sampling.checks import whole_number

_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_COMMENT = re.compile(r"#.*")
_SEPARATOR = re.compile(r"[\s,]+")


@dataclass(frozen=True)
class SkipList:
    """Sample numbers that are passed over, kept as ranges.

    The k-th kept sample is found by binary search among the ranges, so nothing here is as large as
    the dataset.

    Attributes:
        ranges: (begin, end) of each run of skipped samples, `end` not included; in rising order,
            with kept samples between them.

    Raises:
        ValueError: ranges that are empty, overlap, touch, or do not rise.
    """

    ranges: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        before = -1
        for begin, end in self.ranges:
            if not before < begin < end:
                raise ValueError(
                    f"ranges: ({begin}, {end}) after one that ends at {before}; they rise and have "
                    "kept samples between them. SkipList.of makes them from any numbers"
                )
            before = end

    @classmethod
    def of(cls, samples: Iterable[int] | Integer[np.ndarray, " samples"]) -> "SkipList":
        """The list of these numbers, in any order, repeated or not.

        Raises:
            ValueError: a negative number.
            TypeError: one that is no integer.
        """
        if isinstance(samples, range):
            samples = np.arange(samples.start, samples.stop, samples.step, dtype=np.int64)
        if not isinstance(samples, np.ndarray) or samples.dtype.kind not in "iu":
            samples = np.array([whole_number("samples", sample) for sample in samples], np.int64)
        numbers = np.unique(samples.astype(np.int64))
        if numbers.size == 0:
            return cls()
        if numbers[0] < 0:
            raise ValueError(f"samples: {numbers[0]} is negative; samples are numbered from 0")
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) > 1)
        ends = np.append(starts[1:], numbers.size) - 1
        begins, lasts = numbers[starts].tolist(), numbers[ends].tolist()
        return cls(tuple((begin, last + 1) for begin, last in zip(begins, lasts, strict=True)))

    @classmethod
    def parse(cls, text: str) -> "SkipList":
        """The list that a text names: "3, 10-12" is 3, 10, 11 and 12.

        Numbers and ranges (both ends included) are separated by commas, blanks or lines; what
        follows "#" on a line is a remark.

        Raises:
            ValueError: anything else, or a range that goes down.
        """
        found: list[tuple[int, int]] = []
        for number, line in enumerate(text.splitlines(), 1):
            for item in _SEPARATOR.split(_COMMENT.sub("", line).strip()):
                if not item:
                    continue
                match = _RANGE.fullmatch(item)
                first = int(match[1]) if match else 0
                last = int(match[2] or match[1]) if match else -1
                if last < first:
                    raise ValueError(
                        f"skip list, line {number}: {item!r} is neither a sample number nor a "
                        "range; write for example 17 or 40-55"
                    )
                found.append((first, last + 1))
        merged: list[tuple[int, int]] = []
        for begin, end in sorted(found):
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return cls(tuple(merged))

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return ",".join(
            str(begin) if end == begin + 1 else f"{begin}-{end - 1}" for begin, end in self.ranges
        )

    def __len__(self) -> int:
        """How many samples are skipped."""
        return sum(end - begin for begin, end in self.ranges)

    @property
    def end(self) -> int:
        """One more than the largest skipped number; 0 if none is skipped."""
        return self.ranges[-1][1] if self.ranges else 0

    def kept(self, numbers: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        """The sample that is the k-th one kept, for each k of `numbers` (from 0)."""
        begins, _, skipped = self._arrays
        # Before range r, begins[r] - skipped[r] samples are kept.
        ranges = np.searchsorted(begins - skipped[:-1], numbers, "right")
        return numbers + skipped[ranges]

    def skipped_below(self, samples: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        """How many skipped samples are below each of `samples`."""
        begins, ends, skipped = self._arrays
        ranges = np.searchsorted(begins, samples, "left")
        whole = skipped[ranges]
        if ranges.size and begins.size:
            over = np.where(ranges > 0, ends[np.maximum(ranges - 1, 0)] - samples, 0)
            whole = whole - np.maximum(over, 0)
        return whole

    def contains(self, samples: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        """1 for each of `samples` that is skipped, 0 for the others."""
        return self.skipped_below(samples + 1) - self.skipped_below(samples)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Begins, ends, and how many are skipped in all ranges before each (and in all)."""
        pairs = np.array(self.ranges, np.int64).reshape(-1, 2)
        skipped = np.concatenate([[0], np.cumsum(pairs[:, 1] - pairs[:, 0])]).astype(np.int64)
        return pairs[:, 0].copy(), pairs[:, 1].copy(), skipped
