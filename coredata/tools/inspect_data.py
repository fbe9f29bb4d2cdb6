"""What a run reads: shares, epochs and repeats of every source, and the memory of its indices."""

from dataclasses import asdict, dataclass
from typing import Any

from coredata.datasets import BlendedDataset, GPTDataset, Report, usage_report
from coredata.datasets.masked import MaskedWordPieceDataset
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
    """

    report: Report
    memory: tuple[IndexMemory, ...]

    def as_data(self) -> dict[str, Any]:
        """The same as values that JSON holds."""
        return {
            **asdict(self.report),
            "index_memory": [{**asdict(one), "total": one.total} for one in self.memory],
            "index_bytes": sum(one.total for one in self.memory),
        }


def run_facts(data: OpenedData) -> RunFacts:
    """Account for the datasets of a run."""
    memory = []
    for name, split in zip(SPLITS, data.datasets, strict=True):
        for dataset in split if isinstance(split, list) else [split]:
            if dataset is not None:
                memory.extend(_memory(name, dataset))
    return RunFacts(usage_report(data.datasets), tuple(memory))


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
