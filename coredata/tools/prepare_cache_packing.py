"""Packing plans of the run that `coredata prepare-cache` prepares."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata.datasets import BlendedDataset, CachedPlans, IndexCache, VarlenDataset, WithoutSamples
from coredata.datasets.pack_lengths import lengths_cache, row_datasets
from coredata.sampling import SkipList
from coredata.tools.data_packing import check_packing, packing_from_args
from coredata.tools.output import progress
from coredata.tools.skip_samples import without


def check_plan_flags(args: argparse.Namespace) -> None:
    """Refuse --packing-plan where it cannot be had.

    Raises:
        ValueError: the text says why.
    """
    try:
        check_packing(args)
    except ValueError as error:
        raise ValueError(f"--packing-plan: {error}") from error


def make_plans(args: argparse.Namespace, datasets: list[Any], skip: SkipList) -> list[CachedPlans]:
    """The plans of all splits, made if they are not kept already.

    Args:
        args: the flags.
        datasets: train, valid and test; None where there is none, a list for several sets.
        skip: samples that training passes over.

    Raises:
        ValueError: samples that cannot be packed so.
        IndexCacheError: the cache cannot be written.
    """
    told = "looking at rows"

    def tell(text: str) -> None:
        nonlocal told
        told = text

    train, *others = datasets
    made: list[CachedPlans] = []
    with progress(lambda: told):
        for split in [train if train is None else without(train, skip), *others]:
            for dataset in split if isinstance(split, list) else [split]:
                if dataset is not None:
                    made.append(packing_from_args(args, dataset))
                    made[-1].open(tell)
    return made


@dataclass(frozen=True)
class Filled:
    """Rows, or packs, of a plan, and the share of their places that holds a token."""

    rows: int
    share: float


def filled(plan: CachedPlans) -> Filled:
    """How well a plan fills its rows.

    Raises:
        Exception: see `CachedPlans.open`.
    """
    kept = plan.open()
    rows = kept.row_splits.size - 1
    tokens = int(kept.segments[:, 2].sum(dtype=np.int64))
    return Filled(rows, tokens / (rows * kept.limit) if rows else 1.0)


def kept_by(plans: list[CachedPlans]) -> Iterator[tuple[str, int, IndexCache, Filled | None]]:
    """The name, the samples and the cache of all that plans keep; of plans also their rows."""
    seen = set()
    for plan in plans:
        for part in row_datasets(plan.dataset):
            cache = lengths_cache(part) if isinstance(part, VarlenDataset) else None
            if cache is not None and cache.path("") not in seen:
                seen.add(cache.path(""))
                yield f"lengths of {part.dataset_path}", len(part), cache, None
        cache = plan.cache()
        if cache is not None:
            yield f"packing of {name_of(plan.dataset)}", len(plan.dataset), cache, filled(plan)


def name_of(dataset: Any) -> str:
    """What a page calls a dataset."""
    if isinstance(dataset, WithoutSamples):
        return name_of(dataset.dataset)
    if isinstance(dataset, BlendedDataset):
        return f"blend of {len(dataset.datasets)}"
    return str(dataset.unique_identifiers.get("dataset_path") or "made-up data")
