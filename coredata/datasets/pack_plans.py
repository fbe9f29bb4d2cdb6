"""The packing plans of a whole run, kept in the index cache: a start with them plans nothing."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, final

import numpy as np

from coredata._typing import Int64, Integer
from coredata.datasets.identity import describe
from coredata.datasets.index_cache import Arrays, IndexCache
from coredata.datasets.npy import DamagedFileError
from coredata.datasets.pack_lengths import (
    Tell,
    file_versions,
    padded_lengths,
    row_datasets,
    single_samples,
    tell_nobody,
)
from coredata.datasets.pack_windows import (
    PlannedWindows,
    ReadWindows,
    Schedule,
    ScheduleWindows,
)
from coredata.datasets.protocol import Dataset
from coredata.storage import local_path
from coredata.varlen import PackPlan, PackWindows, Segments

NAMES = ("segments", "row_splits", "windows")
_MADE_BY = 1
"""Part of the key: raised when a packer begins to make other plans."""


@dataclass(frozen=True, eq=False)
class KeptPlans:
    """The plans of all windows of a run, laid end to end.

    Attributes:
        segments: sample, offset and length of each segment, as in `coredata.varlen.Segments`.
        row_splits: the segments of row r are `row_splits[r]` up to `row_splits[r + 1]`.
        windows: of each window, where its rows end, and the tokens and samples it lost.
        limit: the most tokens of a row.
    """

    segments: Integer[np.ndarray, "segments 3"]
    row_splits: Int64[np.ndarray, " splits"]
    windows: Int64[np.ndarray, "windows 3"]
    limit: int

    @classmethod
    def of(cls, plans: Iterable[PackPlan], limit: int) -> "KeptPlans":
        """Plans of windows in their order."""
        segments, counts = [np.zeros((0, 3), np.int32)], [np.zeros(1, np.int64)]
        windows, rows = [], 0
        for plan in plans:
            columns = (plan.segments.samples, plan.segments.offsets, plan.segments.lengths)
            found = np.stack(columns, axis=1)
            narrow = not found.size or found.max() <= np.iinfo(np.int32).max
            segments.append(found.astype(np.int32) if narrow else found)
            counts.append(plan.row_segments())
            rows += len(plan)
            windows.append((rows, plan.lost_tokens, plan.lost_samples))
        return cls(
            np.concatenate(segments),
            np.cumsum(np.concatenate(counts)),
            np.array(windows, np.int64).reshape(-1, 3),
            limit,
        )

    def __len__(self) -> int:
        """Number of windows."""
        return len(self.windows)

    def plan(self, window: int) -> PackPlan:
        """The plan of one window, as it was made.

        Raises:
            IndexError: a window that does not exist.
            ValueError: arrays that make no plan.
        """
        if not 0 <= window < len(self):
            raise IndexError(f"There is no window {window}; {len(self)} are numbered from 0.")
        first = int(self.windows[window - 1, 0]) if window else 0
        last, lost_tokens, lost_samples = self.windows[window].tolist()
        splits = self.row_splits[first : last + 1]
        samples, offsets, lengths = (
            self.segments[splits[0] : splits[-1], column].astype(np.int64) for column in range(3)
        )
        segments = Segments(samples, offsets, lengths)
        return PackPlan(segments, splits - splits[0], self.limit, lost_tokens, lost_samples)

    def arrays(self) -> Arrays:
        """By name, to be kept."""
        return {name: getattr(self, name) for name in NAMES}


class CachedPlans(ABC):
    """The plans of a run over rows, from the dataset's cache, else made whole and kept there.

    Made once by whoever comes first, such as `coredata prepare-cache --packing-plan`; the plans
    are the same either way. What changes a plan is part of its key: the samples and their order,
    the files as they are now, padding, and how samples are packed. Without a cache directory,
    they are made anew.
    """

    dataset: Dataset

    def __len__(self) -> int:
        """Number of windows; needs no plan."""
        return len(self._windows(None))

    def plan(self, window: int) -> PackPlan:
        """The plan of one window.

        Raises:
            IndexError: a window that does not exist.
            Exception: see `open`.
        """
        return self.open().plan(window)

    def open(self, tell: Tell = tell_nobody) -> KeptPlans:
        """All plans: those at hand, else those of the cache, else made, and kept.

        Args:
            tell: told how far making them is.

        Raises:
            ValueError: samples that cannot be packed, or a row that makes no sample.
            TypeError: a dataset that is not of rows.
            IndexCacheError: the cache cannot be read or written.
            FileNotFoundError: with `fast_cache_load`, the cache is not there.

        Warns:
            IndexCacheWarning: a damaged cache is built again.
        """
        found = self.__dict__.get("_kept")
        if found is None:
            found = self._load()
            if found is None:
                found = self._make(tell)
            self.__dict__["_kept"] = found
        return found

    def cache(self) -> IndexCache | None:
        """Where the plans are kept; None without a cache directory."""
        parts = list(row_datasets(self.dataset))
        config = parts[0].config
        if config.path_to_cache is None:
            return None
        identifiers = {
            "class": "PackPlans",
            "made_by": _MADE_BY,
            **self._settings(),
            "multiple": config.multiple,
            "files": [version for part in parts for version in file_versions(part)],
            "dataset": dict(self.dataset.fingerprint()),
        }
        return IndexCache(
            config.path_to_cache,
            describe(identifiers),
            "PackPlans",
            parts[0].index_split.name,
            config.storage_options,
        )

    @property
    def whole(self) -> bool:
        """Whether a segment is all of its sample, unless a row cannot hold that."""
        return single_samples(self.dataset)

    @abstractmethod
    def _settings(self) -> Mapping[str, Any]:
        """How samples are packed."""

    @abstractmethod
    def _windows(self, lengths: Int64[np.ndarray, " samples"] | None) -> PlannedWindows:
        """What makes plans, from lengths or by reading."""

    @property
    @abstractmethod
    def _room(self) -> int:
        """Tokens of a row."""

    def _load(self) -> KeptPlans | None:
        cache = self.cache()
        if cache is None:
            return None
        if next(row_datasets(self.dataset)).config.fast_cache_load:
            return KeptPlans(**cache.load_unchecked(NAMES), limit=self._room)
        arrays = cache.load(NAMES, partial(_check, len(self), self._room))
        return None if arrays is None else KeptPlans(**arrays, limit=self._room)

    def _make(self, tell: Tell) -> KeptPlans:
        windows = self._windows(padded_lengths(self.dataset, tell))
        kept = KeptPlans.of(_told(windows, tell), self._room)
        cache = self.cache()
        if cache is not None:
            cache.store(kept.arrays())
            if local_path(cache.directory) is not None:
                # Mapped, the arrays share memory with every other process that uses them.
                return KeptPlans(**cache.load_unchecked(NAMES), limit=self._room)
        return kept

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}


@final
@dataclass(frozen=True, eq=False)
class CachedWindows(CachedPlans):
    """Rows of fixed length, as `coredata.varlen.PackWindows` packs them; see `CachedPlans`.

    Attributes are as there; a dataset takes the place of lengths.

    Raises:
        ValueError: a window of no samples.
    """

    dataset: Dataset
    limit: int
    window: int = 8192
    packer: str = "best_fit_decreasing"
    max_segments: int | None = None
    overflow: str = "error"

    def __post_init__(self) -> None:
        """Check the window."""
        self._windows(None)

    def _settings(self) -> Mapping[str, Any]:
        return {"order": "rows", **self._packing()}

    def _packing(self) -> dict[str, Any]:
        names = ("limit", "window", "packer", "max_segments", "overflow")
        return {name: getattr(self, name) for name in names}

    def _windows(self, lengths: Int64[np.ndarray, " samples"] | None) -> PlannedWindows:
        if lengths is None:
            return ReadWindows(self.dataset, **self._packing())
        return PackWindows(lengths, **self._packing())

    @property
    def _room(self) -> int:
        return self.limit


@final
@dataclass(frozen=True, eq=False)
class CachedSchedule(CachedPlans):
    """The packs of every global batch, spread over data-parallel ranks; see `CachedPlans`.

    Attributes:
        dataset: samples in the order of the run.
        schedule: how they are taken and spread.
    """

    dataset: Dataset
    schedule: Schedule

    def step(self, consumed_samples: int) -> PackPlan | None:
        """The plan of the global batch that ends where so many samples are consumed.

        None if no whole global batch ends there.
        """
        window, rest = divmod(consumed_samples, self.schedule.global_batch_size)
        return None if rest or not 1 <= window <= len(self) else self.plan(window - 1)

    def _settings(self) -> Mapping[str, Any]:
        return {"order": "dp_balanced", **asdict(self.schedule)}

    def _windows(self, lengths: Int64[np.ndarray, " samples"] | None) -> PlannedWindows:
        return ScheduleWindows(self.dataset, self.schedule, lengths)

    @property
    def _room(self) -> int:
        return self.schedule.limit


def _told(windows: PlannedWindows, tell: Tell) -> Iterable[PackPlan]:
    for window in range(len(windows)):
        yield windows.plan(window)
        tell(f"{window + 1:,} of {len(windows):,} windows planned")


def _check(windows: int, limit: int, arrays: Arrays, trusted: bool) -> None:
    """Raise `DamagedFileError` if arrays are not the plans of so many windows."""
    segments, splits, ends = (arrays[name] for name in NAMES)
    shapes = f"{segments.dtype.name} {segments.shape}, {splits.shape} and {ends.shape}"
    if (
        segments.ndim != 2
        or segments.shape[1] != 3
        or segments.dtype.kind != "i"
        or ends.shape != (windows, 3)
        or splits.ndim != 1
        or {splits.dtype, ends.dtype} != {np.dtype(np.int64)}
    ):
        raise DamagedFileError(f"the arrays are {shapes}; the run has {windows} windows")
    rows = np.concatenate([[0], ends[:, 0]])
    whole = splits.size > 0 and splits[0] == 0 and splits[-1] == len(segments)
    if not whole or rows[-1] != splits.size - 1 or (np.diff(rows) < 0).any():
        raise DamagedFileError(f"rows and segments of the arrays, {shapes}, do not belong together")
    if trusted:
        return
    kept = KeptPlans(segments, splits, ends, limit)
    for window in range(windows):
        try:
            kept.plan(window)
        except ValueError as error:
            raise DamagedFileError(f"window {window}: {error}") from error
