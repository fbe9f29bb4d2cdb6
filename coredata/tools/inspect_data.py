"""What a run reads: shares, epochs and repeats of every source, and the memory of its indices."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from coredata.datasets import (
    BlendedDataset,
    GPTDataset,
    Report,
    SplitReport,
    WithoutSamples,
    usage_report,
)
from coredata.datasets.masked import MaskedWordPieceDataset
from coredata.sampling import SkipList
from coredata.storage import local_path
from coredata.tools.opened_data import SPLITS, OpenedData


@dataclass(frozen=True)
class IndexMemory:
    """Bytes of the index arrays of a dataset; mapped ones are shared by processes of a machine.

    Attributes:
        split: which split it is of.
        path: its file; of a blend's own arrays, "blend".
        arrays: name -> bytes.
    """

    split: str
    path: str
    arrays: dict[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.arrays.values())


@dataclass(frozen=True)
class RunFacts:
    """What a run reads.

    Attributes:
        report: shares, epochs, repeats, leftovers.
        memory: of the index arrays.
        notes: what is likely not meant, a sentence each.
    """

    report: Report
    memory: tuple[IndexMemory, ...]
    notes: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The same as values that JSON holds."""
        return {
            **asdict(self.report),
            "notes": list(self.notes),
            "index_memory": [{**asdict(one), "total": one.total} for one in self.memory],
            "index_bytes": sum(one.total for one in self.memory),
        }


def run_facts(data: OpenedData, skip: SkipList | None = None) -> RunFacts:
    """Account for the datasets of a run, of training without the samples on a skip list.

    Raises:
        IndexError: a sample to be skipped that does not exist.
    """
    memory = []
    for name, split in zip(SPLITS, data.datasets, strict=True):
        for dataset in split if isinstance(split, list) else [split]:
            if dataset is not None:
                memory.extend(_memory(name, dataset))
    report = usage_report(data.datasets)
    train = data.datasets[0]
    if skip is not None and skip.ranges and train is not None:
        kept = _kept(report.splits[0], WithoutSamples(train, skip))
        report = Report((kept, *report.splits[1:]))
    return RunFacts(report, tuple(memory), tuple(_notes(report)))


def _notes(report: Report) -> Iterator[str]:
    for split in report.splits:
        paths = [part.path for part in split.datasets if part.path is not None]
        counts = Counter(_whole(path) for path in paths)
        for path in dict.fromkeys(paths):
            count = counts.pop(_whole(path), 0)
            if count > 1:
                times = "twice" if count == 2 else f"{count} times"
                yield (
                    f"{split.name}: {path} stands {times}: the same samples are drawn {times}. "
                    "Name it once, with the sum of its weights"
                )


def _whole(path: str) -> str:
    """The path by which a file is the same as under another name."""
    local = local_path(path)
    return path if local is None else os.path.realpath(local)


def _kept(split: SplitReport, dataset: WithoutSamples) -> SplitReport:
    """What is said of a split, without the samples that are skipped."""
    ranges = [np.arange(begin, end, dtype=np.int64) for begin, end in dataset.skip.ranges]
    skipped = np.concatenate(ranges)
    inner = dataset.dataset
    numbers = (
        inner.blend.lookup(skipped)[0]
        if isinstance(inner, BlendedDataset)
        else np.zeros(skipped.size, np.int64)
    )
    counts = np.bincount(numbers, minlength=len(split.datasets)).tolist()
    parts = []
    for part, count in zip(split.datasets, counts, strict=True):
        drawn = part.drawn - count
        parts.append(
            replace(
                part,
                drawn=drawn,
                achieved_share=drawn / max(len(dataset), 1),
                epochs=None if part.epochs is None else part.epochs * drawn / max(part.drawn, 1),
                most_repeats=part.most_repeats if drawn or part.most_repeats is None else 0,
            )
        )
    return SplitReport(split.name, len(dataset), tuple(parts))


def _memory(split: str, dataset: Any) -> list[IndexMemory]:
    if isinstance(dataset, BlendedDataset):
        both = ("dataset_index", "dataset_sample_index")
        own = {name: int(getattr(dataset, name).nbytes) for name in both}
        parts = [found for part in dataset.datasets for found in _memory(split, part)]
        return [IndexMemory(split, "blend", own), *parts]
    names: tuple[str, ...] = ()
    if isinstance(dataset, GPTDataset):
        names = ("document_index", "sample_index", "shuffle_index")
    elif isinstance(dataset, MaskedWordPieceDataset):
        names = ("sample_index",)
    arrays = {name: int(getattr(dataset, name).nbytes) for name in names}
    return [IndexMemory(split, dataset.dataset_path or "made-up data", arrays)]
