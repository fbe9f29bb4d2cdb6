"""The index arrays of one dataset in one process: opened when needed, small when pickled."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from coredata.datasets.gpt_index_check import check_indices
from coredata.datasets.gpt_index_plan import GPTIndexPlan
from coredata.datasets.index_cache import Arrays, IndexCache
from coredata.indices import GPTIndices
from coredata.storage import local_path

NAMES = tuple(field.name for field in fields(GPTIndices))


class GPTIndexHolder:
    """Keeps index arrays, and knows where to get them again.

    Pickled, it carries the place of a finished cache, from which the receiving process maps the
    arrays; only arrays that are in no cache travel themselves.

    Args:
        cache: where the arrays are kept, or None.
        writable: whether built arrays are stored there.
        trusted: whether the cache is known to be finished, so that it need not be checked.
    """

    def __init__(self, cache: IndexCache | None, writable: bool, trusted: bool) -> None:
        self._cache = cache
        self._writable = writable
        self._trusted = trusted
        self._finished = False
        self._indices: GPTIndices | None = None

    @property
    def opened(self) -> GPTIndices | None:
        """The arrays, if they were opened already."""
        return self._indices

    def open(self, plan: Callable[[], GPTIndexPlan]) -> GPTIndices:
        """The arrays: those at hand, else those of the cache, else built (and stored).

        Args:
            plan: gives what the arrays follow from; called only if they are checked or built.

        Raises:
            ValueError: samples asked of documents without tokens.
            IndexCacheError: the cache cannot be read or written.
            FileNotFoundError: a trusted cache lacks a file.

        Warns:
            IndexCacheWarning: a damaged cache is built again.
        """
        if self._indices is None:
            self._indices = self._open(plan)
        return self._indices

    def _open(self, plan: Callable[[], GPTIndexPlan]) -> GPTIndices:
        cache = self._cache
        if cache is None:
            return plan().build()
        if self._trusted or (self._finished and cache.complete()):
            self._finished = True
            return GPTIndices(**cache.load_unchecked(NAMES))
        known = plan()
        indices = _load(cache, known)
        if indices is None:
            indices = known.build()
            if not self._writable:
                return indices
            cache.store({name: getattr(indices, name) for name in NAMES})
            if local_path(cache.directory) is not None:
                # Mapped, the arrays share memory with every other process that uses them.
                indices = GPTIndices(**cache.load_unchecked(NAMES))
        self._finished = True
        return indices

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._finished:
            state["_indices"] = None
        return state


def _load(cache: IndexCache, plan: GPTIndexPlan) -> GPTIndices | None:
    def check(arrays: Arrays, trusted: bool) -> None:
        check_indices(plan, arrays, trusted)

    arrays = cache.load(NAMES, check)
    return None if arrays is None else GPTIndices(**arrays)
