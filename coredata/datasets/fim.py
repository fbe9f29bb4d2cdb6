"""GPT samples, pieces of which are permuted for fill-in-the-middle."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from coredata._typing import Integer, Shaped
from coredata.datasets.fim_config import GPTFIMDatasetConfig
from coredata.datasets.gpt import GPTDataset
from coredata.datasets.gpt_batch import GatheredText, gather, make_fields
from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.identity import documents_fingerprint
from coredata.datasets.protocol import Batch, TokenSource
from coredata.datasets.sample_numbers import SampleNumbers
from coredata.datasets.special_ids import read_attribute
from coredata.fim import Draws, Infilling, SampleDraws
from coredata.indices import SampleSpans, Split
from coredata.text.fast import accelerated_once


class GPTFIMDataset(GPTDataset):
    """Samples of `GPTDataset` with fill-in-the-middle: same order, same index caches.

    The tokens of a sample are permuted before they become inputs and labels; everything else (loss
    mask, positions, attention mask) is made from the result, and documents end at its
    end-of-document ids. A batch's texts go to the tokenizer together. A short last sample is
    permuted within its own length, then padded.

    Args:
        indexed_dataset: where tokens come from.
        dataset_path: its prefix, for cache keys and errors; None if it has none.
        indexed_indices: the sequences that this split exposes.
        num_samples: samples asked for, or None for one epoch.
        index_split: which split it is.
        config: everything else.

    Raises:
        FIMVocabularyError: a ValueError; the vocabulary lacks tokens that infilling needs.
        ValueError: samples asked of documents without tokens.
        IndexCacheError: a cache directory that cannot be read or written.
    """

    config: GPTFIMDatasetConfig

    def __init__(
        self,
        indexed_dataset: TokenSource,
        dataset_path: str | None,
        indexed_indices: Integer[np.ndarray, " documents"],
        num_samples: int | None,
        index_split: Split,
        config: GPTFIMDatasetConfig,
    ) -> None:
        roles = read_attribute(config.tokenizer, "special_tokens_dict") or {}
        self._infilling = Infilling.of(config.fim_options(), config.tokenizer, roles.values())
        self._faster: Infilling | None = None
        self._stream = np.random.RandomState(config.random_seed)
        super().__init__(
            indexed_dataset, dataset_path, indexed_indices, num_samples, index_split, config
        )

    @staticmethod
    def build_low_level_dataset(dataset_path: str | None, config: GPTDatasetConfig) -> TokenSource:
        """Open the token file with prefix `dataset_path`.

        Raises:
            ValueError: no prefix: there is no made-up data to permute.
        """
        if dataset_path is None:
            raise ValueError(
                "blend: got None, but GPTFIMDataset reads files. Give it blend and split, or "
                "blend_per_split"
            )
        return GPTDataset.build_low_level_dataset(dataset_path, config)

    def fingerprint(self) -> Mapping[str, Any]:
        """What decides which tokens make sample k; infilling's settings are part of it."""
        options = asdict(self._infilling.options)
        return {
            **super().fingerprint(),
            "fim": json.dumps({**options, "randomness": self.config.randomness}, sort_keys=True),
        }

    def _read_mapped(self, indices: Shaped[np.ndarray, " batch"] | Sequence[int]) -> Batch | None:
        """Never: tokens are permuted before they become fields."""
        return None

    def _fields(self, numbers: SampleNumbers) -> Batch:
        config = self.config
        gathered = gather(
            self.dataset,
            self.order.spans(numbers.samples),
            config.sequence_length,
            int(config.add_extra_token_to_sequence),
            np.dtype(config.output_dtype),
        )
        self._permute(gathered, numbers)
        if config.inter_document_masking or config.segment_ids:
            gathered = _by_end_tokens(gathered, self._infilling.ids.eod)
        return make_fields(gathered, config, self._special_ids)

    def _permute(self, gathered: GatheredText, numbers: SampleNumbers) -> None:
        """Replace the rows of `gathered`, each within its own length."""
        rows = [
            text[:length]
            for text, length in zip(gathered.text, gathered.row_lengths.tolist(), strict=True)
        ]
        permuted = self._fast_infilling().batch(rows, self._draws(numbers))
        for row, tokens in zip(rows, permuted, strict=True):
            row[:] = tokens

    def _fast_infilling(self) -> Infilling:
        """With the fastest tokenizer of the same ids; found out by the first read."""
        if self._faster is None:
            self._faster = self._infilling
            if self.config.fim_encoder == "auto":
                tokenizer = accelerated_once(self.config.tokenizer)
                self._faster = replace(self._infilling, tokenizer=tokenizer)
        return self._faster

    def __getstate__(self) -> dict[str, Any]:
        """As for any dataset; each process finds the fastest tokenizer for itself."""
        return {**super().__getstate__(), "_faster": None}

    def _draws(self, numbers: SampleNumbers) -> Iterable[Draws]:
        if self.config.randomness == "stream":
            return repeat(self._stream)
        draws = SampleDraws(self.config.random_seed, self._draws_identity)
        return (draws.at(sample) for sample in numbers.samples.tolist())

    @cached_property
    def _draws_identity(self) -> str:
        """What the draws of a sample belong to: contents and split, wherever the files lie."""
        content = {
            "source": dict(self.dataset.identity()),
            "split": self.index_split.name,
            "documents": documents_fingerprint(self.indices),
        }
        return json.dumps(content, sort_keys=True)


def _by_end_tokens(gathered: GatheredText, eod: int) -> GatheredText:
    """`gathered`, its spans those that end with each `eod` and with the row.

    Permuted documents are longer than those that were read; their end tokens show where they are.
    """
    text, row_lengths = gathered.text, gathered.row_lengths
    last = np.arange(text.shape[1]) == row_lengths[:, None] - 1
    inside = np.arange(text.shape[1]) < row_lengths[:, None]
    rows, columns = np.nonzero(((text == eod) & inside) | last)
    row_splits = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(text)))])
    starts = np.zeros(len(rows), np.int64)
    starts[1:] = np.where(rows[1:] == rows[:-1], columns[:-1] + 1, 0)
    return GatheredText(
        text, row_lengths, SampleSpans(rows, starts, columns + 1 - starts, row_splits)
    )
