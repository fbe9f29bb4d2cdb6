"""What BERT and T5 datasets share: sentences, their map, and reading."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coredata._typing import Int64, Integer, Shaped
from coredata.datasets.batch_memory import allocate
from coredata.datasets.identity import (
    KEY_CONFIG_ATTRIBUTES,
    describe,
    description_hash,
    documents_fingerprint,
    pack_documents,
    unpack_documents,
)
from coredata.datasets.index_cache import IndexCache
from coredata.datasets.masked_config import (
    MASKED_KEY_CONFIG_ATTRIBUTES,
    MaskedWordPieceDatasetConfig,
)
from coredata.datasets.masked_ids import vocabulary
from coredata.datasets.masked_index import SentenceMapHolder, SentenceMapPlan
from coredata.datasets.masked_read import (
    SentenceSource,
    SentenceSpans,
    read_sentences,
    sentence_spans,
)
from coredata.datasets.protocol import Batch, Sample, SpansLookAhead
from coredata.datasets.sample_numbers import SampleNumbers, sample_number, sample_numbers
from coredata.datasets.special_ids import special_ids
from coredata.formats import IndexedDataset
from coredata.indices import SentenceSettings, Split
from coredata.masking import Masking, SampleSentences, WordTable
from coredata.storage import join


class MaskedWordPieceDataset(ABC):
    """Samples of sentences with masked tokens, in the reference's order, bit for bit.

    The file has a sequence for each sentence; documents are what is split into train, valid and
    test. The sentence map is loaded from the cache or built (and cached) by the constructor; with
    `defer_npy_index_mmap`, by the first use. Sample i has a generator of its own, seeded with
    `random_seed` + i: it is the same in any order, process or restart.

    Args:
        indexed_dataset: where tokens come from: a `SentenceSource`, such as `IndexedDataset`.
        dataset_path: its prefix, for cache keys and errors; None if it has none.
        indexed_indices: the documents that this split exposes.
        num_samples: samples asked for, or None for one epoch. There may be more: the last epoch
            is used up.
        index_split: which split it is.
        config: everything else.

    Raises:
        ValueError: samples asked of documents none of which qualifies.
        TypeError: a source that does not know its documents.
        IndexCacheError: a cache directory that cannot be read or written.

    Warns:
        UserWarning: the pad id is also another special id (see `special_ids`).
        IndexCacheWarning: a damaged cache is built again.
    """

    def __init__(
        self,
        indexed_dataset: Any,
        dataset_path: str | None,
        indexed_indices: Integer[np.ndarray, " documents"],
        num_samples: int | None,
        index_split: Split,
        config: Any,
    ) -> None:
        self.dataset = indexed_dataset
        self.dataset_path = dataset_path
        self.indices = indexed_indices
        self.num_samples = num_samples
        self.index_split = index_split
        self.config = config
        self.unique_identifiers = self._identifiers()
        self.unique_description = describe(self.unique_identifiers)
        self.unique_description_hash = description_hash(self.unique_description)
        self._pad = special_ids(config.tokenizer, bool(config.allow_ambiguous_pad_tokens)).pad
        self._prepared: Masking | None = None
        self._holder = SentenceMapHolder(
            self._cache(),
            writable=config.path_to_cache is not None,
            trusted=config.fast_cache_load,
        )
        if not config.defer_npy_index_mmap:
            self._holder.open(self._plan)

    @staticmethod
    def numel_low_level_dataset(low_level_dataset: SentenceSource) -> int:
        """What is split into train, valid and test: documents."""
        return len(low_level_dataset.document_indices) - 1

    @staticmethod
    def build_low_level_dataset(
        dataset_path: str | None, config: MaskedWordPieceDatasetConfig
    ) -> SentenceSource:
        """Open the token file with prefix `dataset_path`.

        Raises:
            ValueError: there is no prefix: masked data are never made up.
        """
        if dataset_path is None:
            raise ValueError(
                "blend: got None, but BERT and T5 datasets read files. Give blend and split, such "
                'as blend=(["corpus_text_sentence"], None), split="969,30,1", or blend_per_split'
            )
        return IndexedDataset(
            dataset_path,
            multimodal=False,
            mmap=config.mmap_bin_files,
            storage_options=config.storage_options,
            fast_cache_load=config.fast_cache_load,
        )

    @property
    def sample_index(self) -> Integer[np.ndarray, "samples 3"]:
        """The sentence map: first sentence, sentence after the last, target length."""
        return self._holder.open(self._plan)

    @property
    def name(self) -> str:
        """What errors call it: split and prefix."""
        return f"the {self.index_split.name} split of {self.dataset_path or 'unnamed data'}"

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.sample_index)

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
        """Samples stacked; -1 gives batch padding.

        Raises:
            IndexError: a sample that does not exist.
            TypeError: numbers that are not integers.
            ValueError: a sample that cannot be made; it names the sample and what would help.
        """
        return self._read(sample_numbers(indices, len(self), self.name))

    def prefetch(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> None:
        """Begin to fetch samples that will be read soon, where that is of use (see `LooksAhead`).

        Raises:
            IndexError: a sample that does not exist.
        """
        source = self.dataset
        if isinstance(source, SpansLookAhead) and source.looks_ahead():
            spans = self._spans(sample_numbers(indices, len(self), self.name).samples)
            source.prefetch(spans.sequences, np.zeros_like(spans.sequences), spans.lengths)

    def fingerprint(self) -> Mapping[str, Any]:
        """What decides which tokens make sample k, of the data and of the settings.

        Not in it: paths, and what padding depends on, which may change when training is resumed.
        """
        config, masking = self.config, self._masking()
        digest = hashlib.sha256(masking.words.kinds.tobytes())
        digest.update(masking.words.ids.tobytes())
        digest.update(repr(masking.ids).encode())
        return {
            "class": type(self).__name__,
            "split": self.index_split.name,
            "num_samples": self.num_samples,
            "samples": len(self),
            "random_seed": config.random_seed,
            "sequence_length": config.sequence_length,
            "documents": documents_fingerprint(self.indices),
            **{name: getattr(config, name) for name in MASKED_KEY_CONFIG_ATTRIBUTES},
            "vocabulary": digest.hexdigest()[:16],
            **{f"source_{key}": value for key, value in self.dataset.identity().items()},
        }

    @abstractmethod
    def _own_key_attributes(self) -> tuple[str, ...]:
        """Fields of the configuration that only this class has in its description."""

    @abstractmethod
    def _sentence_settings(self) -> SentenceSettings:
        """Lengths and seed of the sentence map."""

    @abstractmethod
    def _reads_only_target(self) -> bool:
        """Whether samples need no token beyond their target length."""

    @abstractmethod
    def _build_masking(self, words: WordTable, pad: int) -> Masking:
        """What makes samples of sentences."""

    def _masking(self) -> Masking:
        """What makes samples; the vocabulary is looked through on first use in every process."""
        if self._prepared is None:
            words = WordTable.of(vocabulary(self.config.tokenizer), self.config.masking_word_start)
            self._prepared = self._build_masking(words, self._pad)
        return self._prepared

    def _make(self, samples: SampleSentences) -> Batch:
        """All fields of samples."""
        masking = self._masking()
        batch = allocate(masking.fields(len(samples)))
        masking.fill(samples, batch)
        return batch

    def _read(self, numbers: SampleNumbers) -> Batch:
        try:
            spans = self._spans(numbers.samples)
            seed = self.config.random_seed
            batch = self._make(read_sentences(self.dataset, spans, numbers.samples, seed))
        except (IndexError, ValueError, OSError) as error:
            error.add_note(f"while reading samples {numbers.samples} of {self.name}")
            raise
        if numbers.padding is not None:
            batch["loss_mask"][numbers.padding] = 0
        return batch

    def _spans(self, samples: Int64[np.ndarray, " batch"]) -> SentenceSpans:
        longest, only_target = self._sentence_settings().max_length, self._reads_only_target()
        return sentence_spans(self.dataset, self.sample_index, samples, longest, only_target)

    def _identifiers(self) -> dict[str, Any]:
        """The reference's keys, then what it does not have where that is set."""
        config = self.config
        keys = (*KEY_CONFIG_ATTRIBUTES, *MASKED_KEY_CONFIG_ATTRIBUTES, *self._own_key_attributes())
        identifiers = {
            "class": type(self).__name__,
            "dataset_path": self.dataset_path,
            "num_samples": self.num_samples,
            "index_split": self.index_split.name,
            **{name: getattr(config, name) for name in keys},
        }
        if config.masking_word_start is not None:
            identifiers["masking_word_start"] = config.masking_word_start
        return identifiers

    def _plan(self) -> SentenceMapPlan:
        if not isinstance(self.dataset, SentenceSource):
            raise TypeError(
                f"indexed_dataset: {type(self.dataset).__name__} has no document_indices, which "
                "tell which sentences make a document. Give an IndexedDataset"
            )
        return SentenceMapPlan(
            document_indices=self.dataset.document_indices,
            sequence_lengths=self.dataset.sequence_lengths,
            documents=self.indices,
            num_samples=self.num_samples,
            settings=self._sentence_settings(),
            source=self.name,
        )

    def _cache(self) -> IndexCache | None:
        """The cache that is asked for, else the one that the reference leaves beside the data."""
        directory = self.config.path_to_cache
        class_name = type(self).__name__
        if directory is None:
            if self.dataset_path is None:
                return None
            directory = join(self.dataset_path, "cache", f"{class_name}_indices")
        description, options = self.unique_description, self.config.storage_options
        return IndexCache(directory, description, class_name, "", options)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what the receiving process can open or look up again."""
        return {**self.__dict__, "_prepared": None, "indices": pack_documents(self.indices)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, indices=unpack_documents(state["indices"]))
