"""What the rooms of the library ask of each other: sources of tokens, and datasets of samples."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coredata._typing import Int32, Int64, Integer, Shaped

Sample = dict[str, Any]
"""One sample: field name -> array or scalar."""

Batch = dict[str, np.ndarray]
"""Samples stacked: field name -> array whose first axis is the batch."""

PADDING = -1
"""A sample number that asks for batch padding: some sample's shape, with zero loss everywhere."""


@runtime_checkable
class TokenSource(Protocol):
    """Sequences of tokens, asked for their lengths and for ranges of them.

    `IndexedDataset` is one; mock data is another. Datasets know nothing more about where tokens
    come from.
    """

    @property
    def sequence_lengths(self) -> Int32[np.ndarray, " sequences"]:
        """Tokens in each sequence."""
        ...

    def __len__(self) -> int:
        """Number of sequences."""
        ...

    def read_into(
        self,
        sequences: Int64[np.ndarray, " spans"],
        offsets: Int64[np.ndarray, " spans"],
        lengths: Int64[np.ndarray, " spans"],
        out: Integer[np.ndarray, " tokens"],
        out_offsets: Int64[np.ndarray, " spans"],
    ) -> None:
        """Copy `lengths[i]` tokens from `offsets[i]` of sequence `sequences[i]` to `out`.

        They go to `out[out_offsets[i] :]`, converted to the dtype of `out`; the rest of `out` is
        left alone. Units are tokens.

        Raises:
            IndexError: a sequence that does not exist.
            ValueError: a span that leaves its sequence or `out`; it names the span.
        """
        ...

    def identity(self) -> Mapping[str, Any]:
        """What the source is, without its place: name, sequences, documents, tokens, dtype."""
        ...


@runtime_checkable
class Dataset(Protocol):
    """Samples by number, singly or a batch at once.

    Met by every dataset here, and by shape a map-style torch dataset and a Grain
    `RandomAccessDataSource`.
    """

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def __getitem__(self, index: int | None) -> Sample:
        """Sample `index`; None gives a sample of batch padding (zero loss)."""
        ...

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Several samples at once, as torch's fetcher asks for them."""
        ...

    def get_batch(self, indices: Shaped[np.ndarray, " batch"]) -> Batch:
        """Samples `indices` stacked; `PADDING` (-1) asks for batch padding."""
        ...

    def fingerprint(self) -> Mapping[str, Any]:
        """A small flat mapping that tells this dataset from others; kept in loader states.

        It names settings (seed, sequence length, …) and counts (sequences, documents, tokens), not
        paths, processes or hosts. It is made at every start, without reading: files that were
        written again with the same counts, be it with other tokens or other lengths, have the same
        fingerprint. (`coredata verify` holds files to their checksums.)
        """
        ...


@runtime_checkable
class LooksAhead(Protocol):
    """What can begin to fetch samples, or rows, that will be read soon.

    A hint: it returns before anything has come, changes no result, and costs little where nothing
    has to be fetched. Loaders give it the samples of batches to come.
    """

    def prefetch(self, indices: Shaped[np.ndarray, " samples"]) -> None:
        """Begin to fetch these samples.

        Raises:
            Exception: whatever reading them would raise; whoever hints need not care.
        """
        ...


@runtime_checkable
class SpansLookAhead(Protocol):
    """A source of tokens that can begin to fetch ranges that will be read soon."""

    def looks_ahead(self) -> bool:
        """Whether that is of use: False where tokens lie in memory, or in a local file."""
        ...

    def prefetch(
        self,
        sequences: Int64[np.ndarray, " spans"],
        offsets: Int64[np.ndarray, " spans"],
        lengths: Int64[np.ndarray, " spans"],
    ) -> None:
        """Begin to fetch spans; units are tokens. Spans that do not exist are left out."""
        ...
