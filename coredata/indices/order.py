"""Sample number -> spans of tokens: all that the rest of the library knows about sample order."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from coredata._typing import Int64


@dataclass(frozen=True, eq=False)
class SampleSpans:
    """The tokens of some samples, as spans of sequences.

    Span i is `lengths[i]` tokens from `offsets[i]` of sequence `sequences[i]`. The spans of the
    b-th sample are `row_splits[b]` up to `row_splits[b + 1]`, one per document, in reading order.
    Spans without tokens are left out.
    """

    sequences: Int64[np.ndarray, " spans"]
    offsets: Int64[np.ndarray, " spans"]
    lengths: Int64[np.ndarray, " spans"]
    row_splits: Int64[np.ndarray, " splits"]


@runtime_checkable
class SampleOrder(Protocol):
    """Which tokens make sample k, however that is found out."""

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def spans(self, samples: Int64[np.ndarray, " batch"]) -> SampleSpans:
        """The tokens of `samples`, one row each; extra tokens are in a row's last spans.

        Raises:
            IndexError: a sample that does not exist.
        """
        ...
