"""Several datasets as one: each sample comes from the dataset that is furthest behind its share."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coredata._typing import Int64, Integer, Shaped
from coredata.blending import Blend, normalize
from coredata.datasets.blended_check import check_blended, check_not_oversampled
from coredata.datasets.blended_index import BlendedIndex
from coredata.datasets.config import BlendedMegatronDatasetConfig
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.identity import SPECIAL_IDS, describe, description_hash
from coredata.datasets.index_cache import IndexCache
from coredata.datasets.mid_level import MidLevelDataset
from coredata.datasets.protocol import PADDING, Batch, LooksAhead, Sample
from coredata.datasets.sample_numbers import SampleNumbers, sample_number, sample_numbers

_DETAILED = 32
"""A fingerprint tells apart this many datasets; of more, it has one digest over all."""


class BlendedDataset:
    """Samples of several datasets in fixed shares, in the reference's order, bit for bit.

    Items are the underlying sample and `dataset_id`, the number of its dataset. The index arrays
    are loaded from the cache or built (and cached) by the constructor; with
    `defer_npy_index_mmap`, by the first read.

    Args:
        datasets: what is blended; of one class and one split.
        weights: their shares; with `size` None, how many samples to draw of each. A dataset of
            weight 0 is never drawn.
        size: samples to draw, or None to draw `weights[i]` of dataset i.
        config: where the cache is, and how to use it.

    Raises:
        ValueError: counts that differ, weights that cannot be used, or datasets of several
            classes or splits.
        IndexError: a dataset would be drawn more often than it has samples.
        IndexCacheError: a cache directory that cannot be read or written.

    Warns:
        IndexCacheWarning: a damaged cache is built again.
    """

    def __init__(
        self,
        datasets: Sequence[MidLevelDataset],
        weights: Sequence[int | float],
        size: int | None,
        config: BlendedMegatronDatasetConfig,
    ) -> None:
        check_blended(datasets, weights, size)
        self.datasets = list(datasets)
        self.split = self.datasets[0].index_split
        # A blend of no samples may be one of no weights: there is nothing to draw.
        shares = size is not None and (size > 0 or any(weights))
        self.weights = normalize(weights) if shares else list(weights)
        self.size = size
        self.config = config
        self.unique_identifiers = {
            "class": type(self).__name__,
            "datasets": [dataset.unique_identifiers for dataset in self.datasets],
            "split": self.split.name,
            "weights": self.weights,
            "size": self.size,
        }
        self.unique_description = describe(self.unique_identifiers, _described(self.datasets))
        self.unique_description_hash = description_hash(self.unique_description)
        self._index = BlendedIndex(self.weights, size, self._cache(), config.fast_cache_load)
        if not config.defer_npy_index_mmap:
            self._open()

    @property
    def index_split(self) -> Any:
        """The split that the datasets are of."""
        return self.split

    @property
    def blend(self) -> Blend:
        """Which dataset gives which sample."""
        return self._open()

    @property
    def dataset_index(self) -> Integer[np.ndarray, " samples"]:
        """The dataset of each sample."""
        return self._array("dataset_index")

    @property
    def dataset_sample_index(self) -> Integer[np.ndarray, " samples"]:
        """The number of each sample in its dataset."""
        return self._array("dataset_sample_index")

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"the {self.split.name} blend of {len(self.datasets)} datasets"

    def __len__(self) -> int:
        """Number of samples; needs no index arrays."""
        return len(self._index)

    def __getitem__(self, index: int | np.integer | None) -> Sample:
        """One sample; None, or -1, gives batch padding: sample 0 with no loss anywhere.

        Raises:
            IndexError: a sample that does not exist.
            TypeError: not an integer.
        """
        datasets, samples = self._lookup(sample_number(index, len(self), self.name))
        dataset, sample = int(datasets[0]), int(samples[0])
        item = self.datasets[dataset][None if sample == PADDING else sample]
        return {"dataset_id": np.int32(dataset), **item}

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples, one call for each dataset that has some of them."""
        datasets, samples = self._lookup(sample_numbers(indices, len(self), self.name))
        items: list[Sample] = [{} for _ in range(len(samples))]
        for dataset in np.unique(datasets).tolist():
            rows = np.flatnonzero(datasets == dataset)
            found = self.datasets[dataset].__getitems__(samples[rows].tolist())
            for row, item in zip(rows, found, strict=True):
                items[row] = {"dataset_id": np.int32(dataset), **item}
        return items

    def get_batch(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> Batch:
        """Samples stacked, in the order asked, with `dataset_id` (int32); -1 gives batch padding.

        Each dataset that has some of the samples is asked once.

        Raises:
            IndexError: a sample that does not exist.
            TypeError: numbers that are not integers.
            ValueError: datasets whose samples differ in fields or shapes.
        """
        datasets, samples = self._lookup(sample_numbers(indices, len(self), self.name))
        present = np.unique(datasets).tolist() or [0]  # of no samples, any dataset's fields
        batch: Batch = {"dataset_id": datasets.astype(np.int32)}
        for dataset in present:
            rows = np.flatnonzero(datasets == dataset)
            part = self.datasets[dataset].get_batch(samples[rows])
            if len(present) == 1:
                return {**batch, **part}
            self._place(part, rows, dataset, batch, first=dataset == present[0])
        return batch

    def prefetch(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> None:
        """Begin to fetch samples that will be read soon, where that is of use (see `LooksAhead`).

        Raises:
            IndexError: a sample that does not exist.
        """
        datasets, samples = self._lookup(sample_numbers(indices, len(self), self.name))
        for dataset in np.unique(datasets).tolist():
            part = self.datasets[dataset]
            if isinstance(part, LooksAhead):
                part.prefetch(samples[datasets == dataset])

    def fingerprint(self) -> Mapping[str, Any]:
        """What decides which tokens make sample k: shares, and the datasets' own fingerprints."""
        parts = [dict(dataset.fingerprint()) for dataset in self.datasets]
        ids = dict.fromkeys(part.pop(SPECIAL_IDS) for part in parts if SPECIAL_IDS in part)
        contents = [json.dumps(part, sort_keys=True) for part in parts]
        details = contents if len(contents) <= _DETAILED else []
        return {
            "class": type(self).__name__,
            "split": self.split.name,
            "samples": len(self),
            "datasets": len(self.datasets),
            "weights": _digest(json.dumps(self.weights)),
            "contents": _digest("\n".join(contents)),
            **{f"dataset_{i}": _digest(content) for i, content in enumerate(details)},
            **({SPECIAL_IDS: "; ".join(ids)} if ids else {}),
        }

    def _lookup(
        self, numbers: SampleNumbers
    ) -> tuple[Int64[np.ndarray, " batch"], Int64[np.ndarray, " batch"]]:
        """Dataset and sample of each number; of padding, the dataset of sample 0, and -1."""
        datasets, samples = self.blend.lookup(numbers.samples)
        if numbers.padding is not None:
            samples = np.where(numbers.padding, PADDING, samples)
        return datasets, samples

    def _place(
        self, part: Batch, rows: Int64[np.ndarray, " rows"], dataset: int, batch: Batch, first: bool
    ) -> None:
        """Put the rows that one dataset gave into the batch."""
        if first:
            for field, values in part.items():
                shape = (len(batch["dataset_id"]), *values.shape[1:])
                batch[field] = np.empty(shape, values.dtype)
        if batch.keys() - {"dataset_id"} != part.keys():
            raise ValueError(
                f"dataset {dataset} of {self.name} gives the fields {sorted(part)}, another gives"
                f" {sorted(batch.keys() - {'dataset_id'})}; blend datasets of one kind"
            )
        for field, values in part.items():
            if values.shape[1:] != batch[field].shape[1:]:
                raise ValueError(
                    f"dataset {dataset} of {self.name} gives {field} of shape {values.shape[1:]} a"
                    f" sample, another gives {batch[field].shape[1:]}; blend datasets of one"
                    " sequence length"
                )
            batch[field][rows] = values

    def _array(self, name: str) -> np.ndarray:
        self._open()
        arrays = self._index.arrays
        return np.empty(0, np.int64) if arrays is None else arrays[name]

    def _open(self) -> Blend:
        return self._index.open(self._check_counts)

    def _check_counts(self, drawn: Int64[np.ndarray, " datasets"]) -> None:
        check_not_oversampled(self.datasets, drawn, self.config.mid_level_dataset_surplus)

    def _cache(self) -> IndexCache | None:
        if self.config.path_to_cache is None:
            return None
        return IndexCache(
            self.config.path_to_cache,
            self.unique_description,
            type(self).__name__,
            self.split.name,
            self.config.storage_options,
            self.unique_description_hash,
        )


def _described(datasets: Sequence[Any]) -> list[tuple[dict[str, Any], str]]:
    """Descriptions that datasets have of themselves: a large blend need not write them again."""
    found = [dataset.described() for dataset in datasets if isinstance(dataset, GPTDataset)]
    return [described for described in found if described is not None]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
