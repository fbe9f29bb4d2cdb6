"""GPT samples: S tokens out of shuffled documents, laid end to end."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coredata._typing import Integer, Shaped
from coredata.datasets.gpt_batch import makes_attention_mask, read_batch
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.gpt_identity import (
    drops_last_partial_sequence,
    gpt_identifiers,
    order_options,
)
from coredata.datasets.gpt_index_holder import GPTIndexHolder
from coredata.datasets.gpt_index_plan import GPTIndexPlan
from coredata.datasets.gpt_mapped import MappedReader
from coredata.datasets.identity import (
    SPECIAL_IDS,
    describe,
    description_hash,
    documents_fingerprint,
    pack_documents,
    unpack_documents,
)
from coredata.datasets.index_cache import IndexCache
from coredata.datasets.protocol import Batch, Sample, SpansLookAhead, TokenSource
from coredata.datasets.sample_numbers import SampleNumbers, sample_number, sample_numbers
from coredata.formats import IndexedDataset
from coredata.indices import (
    IndexedOrder,
    Split,
)
from coredata.storage import join


class GPTDataset:
    """Samples for next-token prediction, in the reference's order, bit for bit.

    Documents are repeated for as many epochs as needed, shuffled and cut into samples of S tokens;
    the samples are shuffled again. The three index arrays behind this are loaded from the cache or
    built (and cached) by the constructor; with `defer_npy_index_mmap`, by the first read.

    Args:
        indexed_dataset: where tokens come from.
        dataset_path: its prefix, for cache keys and errors; None if it has none.
        indexed_indices: the sequences that this split exposes.
        num_samples: samples asked for, or None for one epoch. There may be more: the last epoch
            is used up.
        index_split: which split it is.
        config: everything else.

    Raises:
        ValueError: samples asked of documents without tokens.
        IndexCacheError: a cache directory that cannot be read or written.

    Warns:
        UserWarning: the pad id is also another special id (see `special_ids`).
        IndexCacheWarning: a damaged cache is built again.
    """

    def __init__(
        self,
        indexed_dataset: TokenSource,
        dataset_path: str | None,
        indexed_indices: Integer[np.ndarray, " documents"],
        num_samples: int | None,
        index_split: Split,
        config: GPTDatasetConfig,
    ) -> None:
        self.dataset = indexed_dataset
        self.dataset_path = dataset_path
        self.indices = indexed_indices
        self.num_samples = num_samples
        self.index_split = index_split
        self.config = config
        self.unique_identifiers = gpt_identifiers(
            type(self).__name__, dataset_path, num_samples, index_split, config
        )
        self._identified_by = dict(self.unique_identifiers)
        self.unique_description = describe(self.unique_identifiers)
        self.unique_description_hash = description_hash(self.unique_description)
        self._special_ids = config.special_ids
        self._samples: int | None = None
        self._order: IndexedOrder | None = None
        self._mapped: MappedReader | None = None
        self._holder = GPTIndexHolder(
            self._cache(),
            writable=config.path_to_cache is not None,
            trusted=config.fast_cache_load,
        )
        if not config.defer_npy_index_mmap:
            self._holder.open(self._plan)

    @staticmethod
    def numel_low_level_dataset(low_level_dataset: TokenSource) -> int:
        """What is split into train, valid and test: sequences."""
        return len(low_level_dataset.sequence_lengths)

    @staticmethod
    def build_low_level_dataset(dataset_path: str, config: GPTDatasetConfig) -> TokenSource:
        """Open the token file with prefix `dataset_path`.

        Raises:
            ValueError: a prefix that `sequences_per_dataset` does not list.
        """
        known = config.sequences_per_dataset
        if known is not None and dataset_path not in known:
            raise ValueError(
                f"sequences_per_dataset: {dataset_path} is not among its {len(known)} prefixes; "
                "add it, or set sequences_per_dataset=None to read the header instead"
            )
        return IndexedDataset(
            dataset_path,
            multimodal=False,
            mmap=config.mmap_bin_files,
            storage_options=config.storage_options,
            sequences_per_dataset=None if known is None else known[dataset_path],
            dtype_code=config.token_dtype_code,
            fast_cache_load=config.fast_cache_load,
        )

    @property
    def order(self) -> IndexedOrder:
        """Which tokens make sample k."""
        if self._order is None:
            self._order = IndexedOrder(
                self._holder.open(self._plan),
                self.dataset.sequence_lengths,
                self.config.sequence_length,
                self.config.add_extra_token_to_sequence,
            )
        return self._order

    @property
    def document_index(self) -> Integer[np.ndarray, " entries"]:
        """The shuffled documents of all epochs."""
        return self._holder.open(self._plan).document_index

    @property
    def sample_index(self) -> Integer[np.ndarray, "rows 2"]:
        """Where each sample starts: position in the document index, token offset."""
        return self._holder.open(self._plan).sample_index

    @property
    def shuffle_index(self) -> Integer[np.ndarray, " samples"]:
        """Row of the sample index for each sample."""
        return self._holder.open(self._plan).shuffle_index

    def __len__(self) -> int:
        """Number of samples; by arithmetic while index arrays are deferred."""
        opened = self._holder.opened
        if opened is not None:
            return len(opened.shuffle_index)
        if self._samples is None:
            self._samples = self._plan().counts().samples
        return self._samples

    def __getitem__(self, index: int | np.integer | None) -> Sample:
        """One sample: a batch of one without its first axis.

        None, or -1, gives batch padding: the shapes of a sample, with no loss anywhere.

        Raises:
            IndexError: a sample that does not exist.
            TypeError: not an integer.
        """
        batch = self._read(sample_number(index, len(self), self.name))
        return {name: values[0] for name, values in batch.items()}

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples, read together."""
        batch = self.get_batch(indices)
        return [
            {name: values[row] for name, values in batch.items()} for row in range(len(indices))
        ]

    def get_batch(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> Batch:
        """Samples stacked, shapes (B, S) unless said otherwise; -1 gives batch padding.

        `tokens`, `labels` (next tokens), `loss_mask` (float32) and `position_ids`; if the
        configuration asks for them, `attention_mask` (bool (B, 1, S, S), True where masked),
        `cu_seqlens` (int32 (B, S + 1): document boundaries, then S again and again) with
        `max_seqlen` (int32 (B)), and `segment_ids` (int32: 1, 2, … by document, 0 for padding).

        A document without tokens in a sample makes no segment. (The reference repeats its
        boundary.)

        Raises:
            IndexError: a sample that does not exist.
            TypeError: numbers that are not integers.
            ValueError: index arrays and tokens that do not fit together.
        """
        batch = self._read_mapped(indices)
        if batch is None:
            batch = self._read(sample_numbers(indices, len(self), self.name))
        return batch

    def prefetch(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> None:
        """Begin to fetch samples that will be read soon, where that is of use (see `LooksAhead`).

        Raises:
            IndexError: a sample that does not exist.
        """
        source = self.dataset
        if isinstance(source, SpansLookAhead) and source.looks_ahead():
            spans = self.order.spans(sample_numbers(indices, len(self), self.name).samples)
            source.prefetch(spans.sequences, spans.offsets, spans.lengths)

    def fingerprint(self) -> Mapping[str, Any]:
        """What decides which tokens make sample k, of the data and of the settings.

        Not in it: paths, and settings of masks and dtypes, which may change when training is
        resumed. End and pad ids are: other ones are another tokenizer's. Of the files it has
        counts; see `Dataset.fingerprint`.
        """
        return {
            "class": type(self).__name__,
            "split": self.index_split.name,
            "num_samples": self.num_samples,
            "samples": len(self),
            "random_seed": self.config.random_seed,
            "sequence_length": self.config.sequence_length,
            "documents": documents_fingerprint(self.indices),
            **order_options(self.config, self.index_split),
            SPECIAL_IDS: f"eod {self._special_ids.eod}, pad {self._special_ids.pad}",
            **{f"source_{key}": value for key, value in self.dataset.identity().items()},
        }

    def described(self) -> tuple[dict[str, Any], str] | None:
        """The identifiers and their text; None if they were changed since that was written."""
        identifiers = self.unique_identifiers
        if identifiers != self._identified_by:
            return None
        return identifiers, self.unique_description

    @property
    def name(self) -> str:
        """What errors call it: split and prefix."""
        return f"the {self.index_split.name} split of {self.dataset_path or 'unnamed data'}"

    def _read(self, numbers: SampleNumbers) -> Batch:
        try:
            batch = self._fields(numbers)
        except (IndexError, ValueError, OSError) as error:
            error.add_note(f"while reading samples {numbers.samples} of {self.name}")
            raise
        if numbers.padding is not None:
            batch["loss_mask"][numbers.padding] = 0
        return batch

    def _read_mapped(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> Batch | None:
        """A batch in one compiled call, where that can be; see `MappedReader`."""
        if self._mapped is None:
            source = self.dataset
            if not isinstance(source, IndexedDataset) or makes_attention_mask(self.config):
                return None
            self._mapped = MappedReader(source, self.order, self.config, self._special_ids)
        return self._mapped.read(indices)

    def _fields(self, numbers: SampleNumbers) -> Batch:
        """All fields of samples; infilling changes the tokens first."""
        batch = self._read_mapped(numbers.samples)
        if batch is None:
            spans = self.order.spans(numbers.samples)
            batch = read_batch(self.dataset, spans, self.config, self._special_ids)
        return batch

    def _plan(self) -> GPTIndexPlan:
        config = self.config
        return GPTIndexPlan(
            sequence_lengths=self.dataset.sequence_lengths,
            documents=self.indices,
            num_samples=self.num_samples,
            sequence_length=config.sequence_length,
            random_seed=config.random_seed,
            add_extra_token=config.add_extra_token_to_sequence,
            drop_last_partial_sequence=drops_last_partial_sequence(config, self.index_split),
            separate_final_epoch_threshold=config.separate_final_epoch_threshold,
            source=self.name,
        )

    def _cache(self) -> IndexCache | None:
        """The cache that is asked for, else the one that the reference leaves beside the data."""
        directory = self.config.path_to_cache
        class_name = type(self).__name__
        if directory is None:
            if self.config.mock or self.dataset_path is None:
                return None
            directory = join(self.dataset_path, "cache", f"{class_name}_indices")
        return IndexCache(
            directory,
            self.unique_description,
            class_name,
            self.index_split.name,
            self.config.storage_options,
            self.unique_description_hash,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what the receiving process can open or count again."""
        own = {"_order": None, "_mapped": None, "indices": pack_documents(self.indices)}
        return {**self.__dict__, **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, indices=unpack_documents(state["indices"]))
