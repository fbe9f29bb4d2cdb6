"""What a run will read: shares, epochs, repeats and leftovers, as data and as a table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coredata.datasets.blended import BlendedDataset
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.mid_level import MidLevelDataset
from coredata.indices import Split, plan_epochs, tokens_per_epoch


@dataclass(frozen=True)
class DatasetReport:
    """What one dataset gives to its split.

    What is counted in tokens is None for datasets that are not cut from a stream of tokens.
    """

    path: str | None
    """Its prefix."""
    drawn: int
    """Samples that the split draws from it."""
    built: int
    """Samples that it has."""
    requested_share: float | None
    """Its normalised weight; None if it is not blended with others."""
    achieved_share: float
    """Its part of the samples of the split."""
    documents: int | None
    """Documents (sequences of the file) that the split covers."""
    empty_documents: int | None
    """Those of them without tokens."""
    tokens: int | None
    """Tokens of these documents, once."""
    epochs: float | None
    """How often a token is read, on average: tokens drawn through tokens."""
    most_repeats: int | None
    """How often a document is read at most: the epochs that its samples were cut from."""
    dropped_tokens: int | None
    """Tokens of these epochs that are in no sample: too few for one more."""

    @property
    def undrawn(self) -> int:
        """Samples that it has and that are not drawn."""
        return self.built - self.drawn


@dataclass(frozen=True)
class SplitReport:
    """One of train, valid and test; of several validation sets, one of them."""

    name: str
    samples: int
    datasets: tuple[DatasetReport, ...]


@dataclass(frozen=True)
class Report:
    """What a builder's datasets read. `str` of it is a table."""

    splits: tuple[SplitReport, ...]

    def __str__(self) -> str:
        return "\n\n".join(_table(split) for split in self.splits)


@runtime_checkable
class _OfASplit(Protocol):
    index_split: Split

    def __len__(self) -> int: ...


def usage_report(datasets: Any) -> Report:
    """Account for the datasets that a builder gave: its list of train, valid and test, or one.

    Reads the length of every document and every entry of a blend's index once.

    Raises:
        TypeError: something else was given.
    """
    splits = []
    for dataset in _listed(datasets):
        several = isinstance(dataset, list)
        for number, one in enumerate(dataset if several else [dataset]):
            if one is not None:
                if not isinstance(one, _OfASplit):
                    raise _no_dataset(one)
                splits.append(_split_report(one, number if several else None))
    return Report(tuple(splits))


def _listed(value: Any) -> Sequence[Any]:
    if isinstance(value, _OfASplit):
        return [value]
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _no_dataset(value)
    return value


def _no_dataset(value: Any) -> TypeError:
    return TypeError(
        f"usage_report is given {type(value).__name__!r}, which is no dataset of a builder. Give "
        "it what BlendedMegatronDatasetBuilder(…).build() gave, whole, or one dataset of it"
    )


def _split_report(dataset: Any, number: int | None) -> SplitReport:
    name = dataset.index_split.name + ("" if number is None else f" {number}")
    if not isinstance(dataset, BlendedDataset):
        return SplitReport(name, len(dataset), (_dataset_report(dataset, len(dataset), None, 1.0),))
    drawn = dataset.blend.counts().tolist()
    weights = np.array(dataset.weights, np.float64)
    shares = (weights / max(weights.sum(), np.finfo(np.float64).tiny)).tolist()
    total = max(len(dataset), 1)
    parts = tuple(
        _dataset_report(part, count, share, count / total)
        for part, count, share in zip(dataset.datasets, drawn, shares, strict=True)
    )
    return SplitReport(name, len(dataset), parts)


def _dataset_report(
    dataset: MidLevelDataset, drawn: int, requested: float | None, achieved: float
) -> DatasetReport:
    path = dataset.unique_identifiers.get("dataset_path")
    counts = (path, drawn, len(dataset), requested, achieved)
    if not isinstance(dataset, GPTDataset):
        return DatasetReport(*counts, *[None] * 6)
    config = dataset.config
    lengths = dataset.dataset.sequence_lengths
    tokens = tokens_per_epoch(lengths, dataset.indices)
    length, extra = config.sequence_length, config.add_extra_token_to_sequence
    epochs = plan_epochs(tokens, dataset.num_samples, length, extra).epochs
    dropped = max(epochs * tokens - int(extra) - len(dataset) * length, 0)
    return DatasetReport(
        *counts,
        documents=len(dataset.indices),
        empty_documents=int(np.count_nonzero(lengths[dataset.indices] == 0)),
        tokens=tokens,
        epochs=drawn * length / tokens if tokens else 0.0,
        most_repeats=epochs if drawn else 0,
        dropped_tokens=dropped,
    )


_COLUMNS = (
    ("documents", lambda row: _count(row.documents)),
    ("tokens", lambda row: _count(row.tokens)),
    ("samples", lambda row: _count(row.drawn)),
    ("asked", lambda row: _percent(row.requested_share)),
    ("achieved", lambda row: _percent(row.achieved_share)),
    ("epochs", lambda row: "–" if row.epochs is None else f"{row.epochs:.2f}"),
    ("repeats ≤", lambda row: _count(row.most_repeats)),
    ("undrawn", lambda row: _count(row.undrawn)),
    ("dropped tokens", lambda row: _count(row.dropped_tokens)),
)


def _table(split: SplitReport) -> str:
    rows = [["dataset", *(title for title, _ in _COLUMNS)]]
    for dataset in split.datasets:
        rows.append([dataset.path or "(made up)", *(text(dataset) for _, text in _COLUMNS)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head = f"{split.name}: {split.samples:,} samples from {len(split.datasets)} dataset" + (
        "" if len(split.datasets) == 1 else "s"
    )
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([head, lines[0], "─" * (sum(widths) + 2 * len(_COLUMNS)), *lines[1:]])


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _percent(share: float | None) -> str:
    if share is None:
        return "–"
    percent = 100 * share
    # Two digits after the point; of less than 0.1 %, two digits that count.
    digits = 2 if percent == 0 or percent >= 0.1 else 1 - math.floor(math.log10(percent))
    return f"{percent:.{digits}f} %"
