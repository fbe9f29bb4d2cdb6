"""What a dataset class needs for the builder to build it, and for a blend to hold it."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from coredata._typing import Integer
from coredata.datasets.protocol import Dataset
from coredata.indices import Split


@runtime_checkable
class MidLevelDataset(Dataset, Protocol):
    """Samples of one split of one source, such as a `GPTDataset`.

    Attributes:
        unique_identifiers: what its index cache is named by.
        index_split: which split it is.
        num_samples: samples asked of it; None for what one epoch gives.
    """

    unique_identifiers: Mapping[str, Any]
    index_split: Split
    num_samples: int | None


@runtime_checkable
class MidLevelDatasetClass(Protocol):
    """The class of a `MidLevelDataset`, or anything that acts like one."""

    def numel_low_level_dataset(self, low_level_dataset: Any) -> int:
        """How many elements a source has, of the kind that is split into train, valid and test."""
        ...

    def build_low_level_dataset(self, dataset_path: Any, config: Any) -> Any:
        """Open the source at `dataset_path` (None for made-up data)."""
        ...

    def __call__(
        self,
        low_level_dataset: Any,
        dataset_path: str | None,
        indices: Integer[np.ndarray, " elements"],
        num_samples: int | None,
        index_split: Split,
        config: Any,
        /,
    ) -> Any:
        """A dataset over some elements of a source."""
        ...
