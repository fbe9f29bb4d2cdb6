"""Building all that flags ask for into a cache, and the account of it."""

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from coredata.datasets import BlendedDataset, MidLevelDatasetClass
from coredata.datasets.identity import description_hash
from coredata.formats.row_bytes import absolute
from coredata.storage import expand
from coredata.tools.cache_watch import CacheState, look_at, row_indices
from coredata.tools.data_arguments import DataPlan, data_plan
from coredata.tools.data_limits import check_possible
from coredata.tools.data_sizes import RunSizes, sizes_from_args
from coredata.tools.output import count_of, progress
from coredata.tools.prepare_cache_checks import check_directory, check_skip
from coredata.tools.prepare_cache_packing import check_plan_flags, kept_by, make_plans, name_of
from coredata.tools.skip_samples import read_skip_list

_OF_ROWS = ("SFTDataset", "VarlenDataset")


@dataclass(frozen=True)
class PreparedCache:
    """One dataset, or blend, or index of rows.

    Attributes:
        name: a prefix, or what it is.
        split: train, valid, test; "" for an index of rows, which all splits share.
        samples: how many it has; None for an index of rows.
        state: "hit", "built", or "nothing to keep".
        bytes: size of its files.
        rows: of a packing plan, its rows or packs.
        fill: the share of their places that holds a token.
    """

    name: str
    split: str
    samples: int | None
    state: str
    bytes: int
    rows: int | None = None
    fill: float | None = None


@dataclass(frozen=True)
class Prepared:
    """What `prepare` did.

    Attributes:
        directory: the cache.
        sizes: what was asked for, and what that followed from.
        lengths: samples of train, valid (several, with separate validation sets) and test.
        caches: every dataset, blend and index of rows.
        seconds: how long it took.
    """

    directory: str
    sizes: RunSizes
    lengths: tuple[int | list[int] | None, ...]
    caches: tuple[PreparedCache, ...]
    seconds: float

    @property
    def built(self) -> int:
        """How many were not there before."""
        return sum(cache.state == "built" for cache in self.caches)


def prepare(args: argparse.Namespace, note: Callable[[str], None] = lambda text: None) -> Prepared:
    """Build what the flags describe.

    Args:
        args: from a parser of `coredata prepare-cache`.
        note: told what was decided without being asked for.

    Raises:
        ValueError: flags that make no sense, or nothing to build.
        FileNotFoundError: a file is missing.
        IndexCacheError: the cache cannot be written.
    """
    begun = time.perf_counter()
    args = _for_preparing(args, note)
    sizes = sizes_from_args(args, args.prepare_cache_world_size)
    check_possible(args, *sizes.samples)
    args.data_parallel_size = sizes.data_parallel_size
    skip = read_skip_list(args.skip_samples)
    check_skip(skip.end, sizes.train)
    plan = data_plan(args, sizes=sizes.samples)
    for text in plan.notes:
        note(text)
    _refuse_nothing(args, plan)
    directory = str(args.data_cache_path)
    check_directory(directory)
    before = look_at(directory)
    counting = _Counting(plan.dataset_class)
    parts = sum(len(split.parts) for split in plan.builder().plans if split is not None)
    with progress(lambda: f"{counting.done:,} of {count_of(parts, 'dataset')}"):
        datasets = replace(plan, dataset_class=counting).builder().build()
    counts = tuple(_length(dataset) for dataset in datasets)
    check_skip(skip.end, counts[0])
    packings = make_plans(args, datasets, skip) if args.packing_plan else []
    after = look_at(directory)
    caches = [*_rows(plan, before, after), *_datasets(datasets, before, after)]
    for name, samples, cache, packed in kept_by(packings):
        state, size = _state(description_hash(cache.description), before, after)
        rows, fill = (None, None) if packed is None else (packed.rows, packed.share)
        caches.append(PreparedCache(name, cache.split_name, samples, state, size, rows, fill))
    return Prepared(directory, sizes, counts, tuple(caches), time.perf_counter() - begun)


def _for_preparing(args: argparse.Namespace, note: Callable[[str], None]) -> argparse.Namespace:
    """The flags without those that are for using a cache."""
    args = argparse.Namespace(**vars(args))
    if args.data_cache_path is None:
        raise ValueError("--data-cache-path is missing: the directory to prepare")
    if args.prepare_cache_world_size is not None and args.prepare_cache_world_size < 1:
        raise ValueError(
            f"--prepare-cache-world-size {args.prepare_cache_world_size}: need at least 1"
        )
    if args.packing_plan:
        check_plan_flags(args)
    for flag in ("--dataloader-fast-cache-load", "--dataloader-defer-npy-index-mmap"):
        name = flag.removeprefix("--").replace("-", "_")
        if getattr(args, name):
            note(f"{flag} is for the run that uses the cache, and is passed over here")
            setattr(args, name, False)
    return args


def _refuse_nothing(args: argparse.Namespace, plan: DataPlan) -> None:
    if args.mock_data and (args.sft or args.use_varlen_dataset):
        flag = "--sft" if args.sft else "--use-varlen-dataset"
        raise ValueError(
            f"nothing to build: --mock-data with {flag} makes samples up as they are asked for, "
            "and keeps no index; start training without a cache"
        )
    single = not any(split is not None and split.form == "blend" for split in plan.builder().plans)
    columnar = all(prefix.endswith((".parquet", ".pq")) for prefix in plan.prefixes)
    if (args.sft or args.use_varlen_dataset) and single and columnar and not args.packing_plan:
        more = ", or add --packing-plan to keep which samples share a pack"
        raise ValueError(
            "nothing to build: parquet files hold an index of their rows themselves, and one file "
            f"needs no blend; start training without a cache{more}"
        )


class _Counting:
    """A dataset class that counts how many it has built."""

    def __init__(self, cls: MidLevelDatasetClass) -> None:
        self._cls = cls
        self._lock = threading.Lock()
        self.done = 0

    def numel_low_level_dataset(self, low_level_dataset: Any) -> int:
        """As the class says."""
        return self._cls.numel_low_level_dataset(low_level_dataset)

    def build_low_level_dataset(self, dataset_path: Any, config: Any) -> Any:
        """As the class does."""
        return self._cls.build_low_level_dataset(dataset_path, config)

    def __call__(self, *arguments: Any) -> Any:
        """A dataset, counted."""
        built = self._cls(*arguments)
        with self._lock:
            self.done += 1
        return built


def _length(dataset: Any) -> int | list[int] | None:
    if isinstance(dataset, list):
        return [len(one) for one in dataset]
    return None if dataset is None else len(dataset)


def each_dataset(datasets: list[Any]) -> Iterator[Any]:
    """Every dataset and blend that a builder gave, parts before their blend."""
    for dataset in datasets:
        if isinstance(dataset, list):
            yield from each_dataset(dataset)
        elif isinstance(dataset, BlendedDataset):
            yield from dataset.datasets
            yield dataset
        elif dataset is not None:
            yield dataset


def _datasets(datasets: list[Any], before: CacheState, after: CacheState) -> Iterator[Any]:
    for dataset in each_dataset(datasets):
        name = name_of(dataset)
        if type(dataset).__name__ in _OF_ROWS:
            state, size = "nothing to keep", 0
        else:
            state, size = _state(dataset.unique_description_hash, before, after)
        yield PreparedCache(name, dataset.index_split.name, len(dataset), state, size)


def _rows(plan: DataPlan, before: CacheState, after: CacheState) -> Iterator[PreparedCache]:
    if getattr(plan.dataset_class, "__name__", "") not in _OF_ROWS:
        return
    files = [
        absolute(file)
        for prefix in plan.prefixes
        for file in expand(prefix)
        if not file.endswith((".parquet", ".pq"))
    ]
    digests = row_indices(after, files)
    for file in files:
        if file in digests:
            state, size = _state(digests[file], before, after)
            yield PreparedCache(f"rows of {file}", "", None, state, size)


def _state(digest: str, before: CacheState, after: CacheState) -> tuple[str, int]:
    if not after.complete(digest):
        return "nothing to keep", 0
    return ("hit" if before.kept(after, digest) else "built"), after.bytes(digest)
