"""What datasets share that make one sample of one row."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coredata._typing import Integer, Shaped
from coredata.datasets.identity import (
    KEY_CONFIG_ATTRIBUTES,
    describe,
    description_hash,
    documents_fingerprint,
    pack_documents,
    unpack_documents,
)
from coredata.datasets.protocol import Batch, LooksAhead, Sample
from coredata.datasets.rows_batch import stack_samples
from coredata.datasets.rows_loss import LossCounts, LossTally
from coredata.datasets.sample_numbers import SampleNumbers, sample_number, sample_numbers
from coredata.datasets.sft_config import SFTDatasetConfig
from coredata.datasets.special_ids import read_attribute
from coredata.indices import Split
from coredata.varlen import LossFacts

_INTEGERS = frozenset(("tokens", "labels", "position_ids"))

FIELDS = _INTEGERS | {"loss_mask"}
"""The fields that have one entry per token in every sample."""


class RowDataset(ABC):
    """Sample i is made of row `indices[i mod len(indices)]` of a source.

    Nothing is shuffled here and nothing is stored: a sampler or a blend orders samples.

    Args:
        source: rows by number.
        dataset_path: where they are, for identity and errors; None if nowhere.
        indices: the rows that this split exposes.
        num_samples: samples, repeating rows as needed; None for one of each row.
        index_split: which split it is.
        config: everything else.

    Raises:
        ValueError: samples asked of no rows.
    """

    def __init__(
        self,
        source: Any,
        dataset_path: str | None,
        indices: Integer[np.ndarray, " rows"],
        num_samples: int | None,
        index_split: Split,
        config: SFTDatasetConfig,
    ) -> None:
        self.dataset = source
        self.dataset_path = dataset_path
        self.indices = indices
        self.num_samples = num_samples
        self.index_split = index_split
        self.config = config
        if len(indices) == 0 and num_samples:
            raise ValueError(
                f"{num_samples} samples are asked of {self.name}, which has no rows. Give it rows, "
                "or ask for 0 samples"
            )
        self.unique_identifiers: dict[str, Any] = {
            "class": type(self).__name__,
            "dataset_path": dataset_path,
            "num_samples": num_samples,
            "index_split": index_split.name,
            **{name: getattr(config, name) for name in KEY_CONFIG_ATTRIBUTES},
        }
        self.unique_description = describe(self.unique_identifiers)
        self.unique_description_hash = description_hash(self.unique_description)
        self._tally = LossTally()

    @staticmethod
    def numel_low_level_dataset(low_level_dataset: Any) -> int:
        """What is split into train, valid and test: rows."""
        return len(low_level_dataset)

    @property
    def name(self) -> str:
        """What errors call it: split and path."""
        return f"the {self.index_split.name} split of {self.dataset_path or 'unnamed data'}"

    @property
    def loss_counts(self) -> LossCounts:
        """What the samples that this process has read bear of loss."""
        return self._tally.counts

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.indices) if self.num_samples is None else self.num_samples

    def __getitem__(self, index: int | np.integer | None) -> Sample:
        """One sample; None, or -1, gives sample 0 with no loss anywhere.

        Raises:
            IndexError: a sample that does not exist.
            TypeError: not an integer.
            ValueError: a row that makes no sample; the text names file, row and reason.
        """
        return self._read(sample_number(index, len(self), self.name))[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples."""
        return self._read(sample_numbers(indices, len(self), self.name))

    def get_batch(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> Batch:
        """Samples as a batch; -1 gives batch padding.

        Fields of one shape are stacked. Those whose length differs from sample to sample
        (`ragged`) are arrays of objects, of shape (B,): each element is a sample's own array.
        `unstack_samples` makes of such a batch what `coredata.varlen.pack_samples` takes.

        Raises:
            IndexError: a sample that does not exist.
            TypeError: numbers that are not integers.
            ValueError: a row that makes no sample; the text names file, row and reason.
        """
        numbers = sample_numbers(indices, len(self), self.name)
        if len(numbers.samples) == 0:
            one = stack_samples([self._make(0)[0]], self.ragged)
            return {field: values[:0] for field, values in one.items()}
        self.prefetch(indices)  # together, where they have to be fetched
        return stack_samples(self._read(numbers), self.ragged)

    def prefetch(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> None:
        """Begin to fetch the rows of samples that will be read soon (see `LooksAhead`).

        Raises:
            IndexError: a sample that does not exist.
        """
        if isinstance(self.dataset, LooksAhead) and len(self.indices):
            samples = sample_numbers(indices, len(self), self.name).samples
            rows = self.indices[samples % len(self.indices)]
            self.dataset.prefetch(np.asarray(rows, np.int64))

    def loss_facts(self, sample: int) -> LossFacts:
        """What one sample bears of loss; it is made for it, but `loss_counts` stays as it is.

        Raises:
            ValueError: a row that makes no sample; the text names file, row and reason.
        """
        return self._make(sample)[1]

    def fingerprint(self) -> Mapping[str, Any]:
        """What decides which tokens make sample k, of the data and of the settings.

        Not in it: paths, and what padding depends on, which may change when training is resumed.
        """
        return {
            "class": type(self).__name__,
            "split": self.index_split.name,
            "num_samples": self.num_samples,
            "samples": len(self),
            "sequence_length": self.config.sequence_length,
            "documents": documents_fingerprint(self.indices),
            "tokenizer": _tokenizer_digest(self.config.tokenizer),
            **{f"source_{key}": value for key, value in self.dataset.identity().items()},
        }

    @property
    @abstractmethod
    def ragged(self) -> frozenset[str]:
        """Fields whose length differs from sample to sample."""

    @abstractmethod
    def _sample(self, row: int) -> tuple[Sample, LossFacts]:
        """The sample that row number `row` of the source makes; nothing in it is shared."""

    def _make(self, sample: int) -> tuple[Sample, LossFacts]:
        row = int(self.indices[sample % len(self.indices)])
        try:
            fields, facts = self._sample(row)
        except (ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
            error.add_note(f"while making sample {sample} of {self.name}, of row {row}")
            raise
        dtype = np.dtype(self.config.output_dtype)
        return {
            field: values.astype(dtype, copy=False) if field in _INTEGERS else values
            for field, values in fields.items()
        }, facts

    def _read(self, numbers: SampleNumbers) -> list[Sample]:
        samples = []
        for position, number in enumerate(numbers.samples.tolist()):
            sample, facts = self._make(number)
            if numbers.padding is not None and numbers.padding[position]:
                sample["loss_mask"][...] = 0
            else:
                self._count(number, facts)
            samples.append(sample)
        return samples

    def _count(self, sample: int, facts: LossFacts) -> None:
        self._tally.add(facts)
        if facts.kept == 0 and self.config.samples_without_loss == "refuse":
            where = self.dataset.where(int(self.indices[sample % len(self.indices)]))
            reason = (
                f"its {facts.counted} tokens that bear loss lie beyond the first "
                f"{self.config.sequence_length}. Raise sequence_length, shorten or remove the row"
                if facts.counted
                else "it has no answer. Remove the row"
            )
            raise ValueError(
                f"{where}: sample {sample} of {self.name} bears no loss, because {reason}, or set "
                'samples_without_loss="count"'
            )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what the receiving process can count again."""
        return {**self.__dict__, "indices": pack_documents(self.indices)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, indices=unpack_documents(state["indices"]))


def _tokenizer_digest(tokenizer: Any) -> str:
    digest = read_attribute(tokenizer, "content_hash")
    if digest is None:
        return description_hash(json.dumps(read_attribute(tokenizer, "unique_identifiers")))
    return str(digest)
