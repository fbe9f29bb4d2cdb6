"""From a training step to the text it saw, and from a document to the steps that saw it.

Both are answered from plans and index arrays; no token is read.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coredata._typing import Int64
from coredata.datasets.blended import BlendedDataset
from coredata.datasets.trace_find import document_numbers, samples_of_sequences, sequences_of
from coredata.datasets.trace_parts import NO_DATASET, LeafParts, leaf_parts
from coredata.datasets.without_samples import WithoutSamples
from coredata.sampling import TrainingSteps

_BLOCK = 1 << 20


@dataclass(frozen=True)
class TracePart:
    """A stretch of one document in one sample.

    Attributes:
        sample: its number in the dataset that was asked.
        dataset: number of the dataset in the blend; None without a blend.
        path: prefix or file; None for made-up data.
        dataset_sample: number of the sample in that dataset.
        document: number of the document in the file; of rows, the row.
        sequence: number of the sequence in the file; mostly the same.
        offset: first token, counted in the sequence.
        length: tokens; -1 where the whole is turned into tokens only when it is read (rows).
    """

    sample: int
    dataset: int | None
    path: str | None
    dataset_sample: int
    document: int
    sequence: int
    offset: int
    length: int


@dataclass(frozen=True, eq=False)
class Trace:
    """Where samples came from: arrays with an entry for each part, in reading order.

    The names are those of `TracePart`; `datasets` holds -1 where there is no blend, and is the
    place in `paths` otherwise.
    """

    paths: tuple[str | None, ...]
    samples: Int64[np.ndarray, " parts"]
    datasets: Int64[np.ndarray, " parts"]
    dataset_samples: Int64[np.ndarray, " parts"]
    documents: Int64[np.ndarray, " parts"]
    sequences: Int64[np.ndarray, " parts"]
    offsets: Int64[np.ndarray, " parts"]
    lengths: Int64[np.ndarray, " parts"]

    def __len__(self) -> int:
        """Number of parts."""
        return self.samples.size

    def parts(self) -> list[TracePart]:
        """The same, as a list."""
        columns = (self.samples, self.datasets, self.dataset_samples, self.documents)
        more = (self.sequences, self.offsets, self.lengths)
        return [
            TracePart(
                sample,
                None if dataset == NO_DATASET else dataset,
                self.paths[max(dataset, 0)],
                *rest,
            )
            for sample, dataset, *rest in zip(
                *(column.tolist() for column in (*columns, *more)), strict=True
            )
        ]


@dataclass(frozen=True)
class Sightings:
    """Steps that saw a document, in their order, and the samples in which they did.

    Attributes:
        steps: numbers of steps, from 0.
        samples: numbers of samples in the dataset that was asked.
    """

    steps: Int64[np.ndarray, " sightings"]
    samples: Int64[np.ndarray, " sightings"]


def trace_samples(dataset: Any, samples: Int64[np.ndarray, " batch"]) -> Trace:
    """Which documents some samples were cut from, and which tokens of them.

    Works for the datasets of coredata, blends of them, and what `WithoutSamples` keeps of them.
    The extra token that a GPT sample reads for its last label is part of it. Infilling permutes a
    sample's tokens after they are read: their order here is that of the file.

    Raises:
        IndexError: a sample that does not exist.
        TypeError: a dataset that cannot be traced.
    """
    if isinstance(dataset, WithoutSamples):
        _check_numbers(samples, len(dataset))
        inner = trace_samples(dataset.dataset, dataset.original(samples))
        back = inner.samples - dataset.skip.skipped_below(inner.samples)
        return Trace(inner.paths, back, *_columns(inner)[1:])
    _check_numbers(samples, len(dataset))
    if isinstance(dataset, BlendedDataset):
        return _trace_blend(dataset, samples)
    parts = leaf_parts(dataset, samples)
    numbers = samples[parts.rows]
    none = np.full(len(parts.rows), NO_DATASET, np.int64)
    return _trace(dataset, parts, numbers, none, numbers, (_path(dataset),))


def trace_step(dataset: Any, steps: TrainingSteps, step: int) -> Trace:
    """Which documents a training step saw, over all ranks.

    Raises:
        IndexError: there is no such step.
        TypeError: a dataset that cannot be traced.
    """
    return trace_samples(dataset, steps.samples(step))


def samples_of_document(
    dataset: Any, document: int, path: str | None = None
) -> Int64[np.ndarray, " samples"]:
    """The samples, in rising order, that hold tokens of a document.

    Args:
        dataset: see `trace_samples`.
        document: its number in the file; of rows, the row.
        path: of a blend, the file; None looks in all that have so many documents.

    Raises:
        IndexError: no such document.
        ValueError: no such file in the blend.
        TypeError: a dataset that cannot be traced.
    """
    if isinstance(dataset, WithoutSamples):
        inner = samples_of_document(dataset.dataset, document, path)
        kept = inner[dataset.skip.contains(inner) == 0]
        return kept - dataset.skip.skipped_below(kept)
    if isinstance(dataset, BlendedDataset):
        return _samples_in_blend(dataset, document, path)
    if path is not None and path != _path(dataset):
        raise ValueError(f"path: {path} is not what is read here, which is {_path(dataset)}")
    return samples_of_sequences(dataset, *sequences_of(dataset, document))


def steps_of_document(
    dataset: Any,
    steps: TrainingSteps,
    document: int,
    path: str | None = None,
    until: int | None = None,
) -> Sightings:
    """The training steps that saw tokens of a document, and in which samples.

    Args:
        dataset: see `trace_samples`.
        steps: how steps take samples.
        document: see `samples_of_document`.
        path: see `samples_of_document`.
        until: look at so many steps only; default: all (of a cyclic sampler, one epoch).

    Raises:
        IndexError: no such document.
        ValueError: no such file in the blend.
        TypeError: a dataset that cannot be traced.
    """
    taking = steps.taking(samples_of_document(dataset, document, path), until)
    return Sightings(taking.steps, taking.samples)


def _trace_blend(dataset: BlendedDataset, samples: np.ndarray) -> Trace:
    datasets, inner = dataset.blend.lookup(samples)
    paths = tuple(_path(part) for part in dataset.datasets)
    found, places = [], []
    for number in np.unique(datasets).tolist():
        rows = np.flatnonzero(datasets == number)
        leaf = dataset.datasets[number]
        parts = leaf_parts(leaf, inner[rows])
        numbers = np.full(len(parts.rows), number, np.int64)
        at = rows[parts.rows]
        found.append(_trace(leaf, parts, samples[at], numbers, inner[at], paths))
        places.append(at)
    if not found:
        none = np.empty(0, np.int64)
        return Trace(paths, *[none] * 7)
    by_place = np.argsort(np.concatenate(places), kind="stable")
    columns = zip(*map(_columns, found), strict=True)
    return Trace(paths, *(np.concatenate(column)[by_place] for column in columns))


def _samples_in_blend(dataset: BlendedDataset, document: int, path: str | None) -> np.ndarray:
    paths = [_path(part) for part in dataset.datasets]
    if path is not None and path not in paths:
        listed = ", ".join(str(known) for known in dict.fromkeys(paths))
        raise ValueError(f"path: {path} is not in the blend, which reads {listed}")
    wanted: dict[int, np.ndarray] = {}
    missing: IndexError | None = None
    for number, part in enumerate(dataset.datasets):
        if path is None or paths[number] == path:
            try:
                wanted[number] = samples_of_sequences(part, *sequences_of(part, document))
            except IndexError as error:
                missing = error
    if not wanted and missing is not None:
        raise missing
    found = [np.empty(0, np.int64)]
    for begin in range(0, len(dataset), _BLOCK):
        numbers = np.arange(begin, min(begin + _BLOCK, len(dataset)), dtype=np.int64)
        datasets, inner = dataset.blend.lookup(numbers)
        for number, samples in wanted.items():
            here = numbers[datasets == number]
            found.append(here[np.isin(inner[here - begin], samples)])
    return np.unique(np.concatenate(found))


def _trace(
    dataset: Any,
    parts: LeafParts,
    samples: np.ndarray,
    datasets: np.ndarray,
    dataset_samples: np.ndarray,
    paths: tuple[str | None, ...],
) -> Trace:
    documents = document_numbers(dataset, parts.sequences)
    return Trace(
        paths,
        samples,
        datasets,
        dataset_samples,
        documents,
        parts.sequences,
        parts.offsets,
        parts.lengths,
    )


def _columns(trace: Trace) -> tuple[np.ndarray, ...]:
    return (
        trace.samples,
        trace.datasets,
        trace.dataset_samples,
        trace.documents,
        trace.sequences,
        trace.offsets,
        trace.lengths,
    )


def _path(dataset: Any) -> str | None:
    return dataset.unique_identifiers.get("dataset_path")


def _check_numbers(samples: np.ndarray, size: int) -> None:
    wrong = samples[(samples < 0) | (samples >= size)]
    if wrong.size:
        numbered = f"they are numbered 0 to {size - 1}" if size else "none is left"
        raise IndexError(f"sample {wrong[0]} was asked of {size} samples; {numbered}")
