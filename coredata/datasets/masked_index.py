"""The sentence map of one dataset: built or loaded, checked, small when pickled."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coredata._typing import Integer
from coredata.datasets.index_cache import Arrays, IndexCache
from coredata.datasets.npy import DamagedFileError
from coredata.indices import (
    DocumentCounts,
    SentenceSettings,
    build_sentence_map,
    qualifying_documents,
    sentence_map_dtype,
)
from coredata.storage import local_path

NAME = "sample_index"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class SentenceMapPlan:
    """All that a sentence map follows from.

    Attributes:
        document_indices: first sentence of each document, then the number of sentences.
        sequence_lengths: tokens of each sentence.
        documents: the documents that the split exposes.
        num_samples: samples asked for, None for one epoch.
        settings: lengths and seed.
        source: what errors call it.
    """

    document_indices: Integer[np.ndarray, " boundaries"]
    sequence_lengths: Integer[np.ndarray, " sentences"]
    documents: Integer[np.ndarray, " documents"]
    num_samples: int | None
    settings: SentenceSettings
    source: str

    def build(self) -> Integer[np.ndarray, "samples 3"]:
        """The map.

        Raises:
            ValueError: samples asked of documents none of which qualifies.
        """
        return build_sentence_map(
            self.document_indices,
            self.sequence_lengths,
            self.documents,
            self.num_samples,
            self.settings,
            self.source,
        )

    def check(self, rows: np.ndarray, trusted: bool) -> None:
        """Refuse a map that is damaged or was made from other data.

        An epoch has every sentence of every document that qualifies once. In a map that is not
        `trusted` (nobody kept a checksum) each row must also lie in one such document.

        Raises:
            DamagedFileError: it does not fit; it says where.
        """
        dtype = sentence_map_dtype(self.sequence_lengths.size)
        if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype != dtype:
            raise DamagedFileError(
                f"{NAME} is {rows.dtype.name} of shape {rows.shape}, not {dtype.name} of shape "
                "(samples, 3)"
            )
        if self.num_samples is not None and len(rows) < self.num_samples:
            raise DamagedFileError(f"{NAME} has {len(rows)} rows; {self.num_samples} are asked")
        per_epoch = self._qualifying[1].sentences
        total = sum(_sentences(rows[first : first + _BLOCK]) for first in _blocks(rows))
        epochs, rest = divmod(total, max(per_epoch, 1))
        if rest or (self.num_samples is None and total != per_epoch) or (len(rows) and not epochs):
            raise DamagedFileError(
                f"{NAME} has {total} sentences, but an epoch of this split has {per_epoch}. It "
                "was made from other data or settings"
            )
        if not trusted:
            for first in _blocks(rows):
                self._check_rows(rows[first : first + _BLOCK].astype(np.int64), first)

    @cached_property
    def _qualifying(self) -> tuple[np.ndarray, DocumentCounts]:
        return qualifying_documents(
            self.document_indices,
            self.sequence_lengths,
            self.documents,
            self.settings.min_sentences,
        )

    def _check_rows(self, rows: np.ndarray, number: int) -> None:
        documents = np.sort(self._qualifying[0])
        starts, ends = self.document_indices[documents], self.document_indices[documents + 1]
        document = np.searchsorted(starts, rows[:, 0], side="right") - 1
        good = (document >= 0) & (rows[:, 0] < rows[:, 1]) & (rows[:, 1] <= ends[document])
        good &= (rows[:, 2] >= 2) & (rows[:, 2] <= self.settings.max_length)
        if not good.all():
            at = int(good.argmin())
            raise DamagedFileError(
                f"row {number + at} of {NAME}, {rows[at].tolist()}, is not a range of sentences of "
                f"one document with a length of 2 to {self.settings.max_length}"
            )


class SentenceMapHolder:
    """Keeps the map, and knows where to get it again.

    Pickled, it carries the place of a finished cache, from which the receiving process maps the
    array; only a map that is in no cache travels itself.

    Args:
        cache: where the map is kept, or None.
        writable: whether a built one is stored there.
        trusted: whether the cache is known to be finished, so that it need not be checked.
    """

    def __init__(self, cache: IndexCache | None, writable: bool, trusted: bool) -> None:
        self._cache = cache
        self._writable = writable
        self._trusted = trusted
        self._finished = False
        self._rows: np.ndarray | None = None

    def open(self, plan: Callable[[], SentenceMapPlan]) -> Integer[np.ndarray, "samples 3"]:
        """The map: the one at hand, else that of the cache, else built (and stored).

        Raises:
            ValueError: samples asked of documents none of which qualifies.
            IndexCacheError: the cache cannot be read or written.
            FileNotFoundError: a trusted cache lacks a file.

        Warns:
            IndexCacheWarning: a damaged cache is built again.
        """
        if self._rows is None:
            self._rows = self._open(plan)
        return self._rows

    def _open(self, plan: Callable[[], SentenceMapPlan]) -> np.ndarray:
        cache = self._cache
        if cache is None:
            return plan().build()
        if self._trusted or (self._finished and cache.complete()):
            self._finished = True
            return cache.load_unchecked([NAME])[NAME]
        known = plan()
        rows = _load(cache, known)
        if rows is None:
            rows = known.build()
            if not self._writable:
                return rows
            cache.store({NAME: rows})
            if local_path(cache.directory) is not None:
                # Mapped, the array shares memory with every other process that uses it.
                rows = cache.load_unchecked([NAME])[NAME]
        self._finished = True
        return rows

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._finished:
            state["_rows"] = None
        return state


def _load(cache: IndexCache, plan: SentenceMapPlan) -> np.ndarray | None:
    def check(arrays: Arrays, trusted: bool) -> None:
        plan.check(arrays[NAME], trusted)

    arrays = cache.load([NAME], check)
    return None if arrays is None else arrays[NAME]


def _blocks(rows: np.ndarray) -> range:
    return range(0, len(rows), _BLOCK)


def _sentences(rows: np.ndarray) -> int:
    return int((rows[:, 1].astype(np.int64) - rows[:, 0].astype(np.int64)).sum())
