"""Made-up samples of varying length, for benchmarks and first runs."""

from typing import final

import numpy as np

from coredata._typing import Integer
from coredata.datasets.protocol import Sample
from coredata.datasets.rows_dataset import FIELDS, RowDataset
from coredata.datasets.rows_mock import MockRows, build_mock_rows
from coredata.datasets.sft_config import VarlenDatasetConfig
from coredata.datasets.sft_mock import mock_facts, require_mock
from coredata.indices import Split
from coredata.varlen import LossFacts, mock_single_sample


@final
class MockVarlenDataset(RowDataset):
    """Samples of lengths as `varlen_mock_dataset_config_json` says.

    See `coredata.varlen.mock_single_sample` for the fields, and `VarlenDataset` for batches.

    Raises:
        ValueError: a configuration with a blend, or one that wants samples padded to S.
    """

    def __init__(
        self,
        source: MockRows,
        dataset_path: str | None,
        indices: Integer[np.ndarray, " rows"],
        num_samples: int | None,
        index_split: Split,
        config: VarlenDatasetConfig,
    ) -> None:
        require_mock(config, "MockVarlenDataset", "VarlenDataset")
        super().__init__(source, dataset_path, indices, num_samples, index_split, config)

    @staticmethod
    def build_low_level_dataset(dataset_path: str | None, config: VarlenDatasetConfig) -> MockRows:
        """The made-up rows; the path means nothing.

        Raises:
            ValueError: samples padded to S, which made-up ones are not.
        """
        rows = build_mock_rows(config)
        if config.varlen_sbhd_validation or rows.options.format == "sbhd":
            raise ValueError(
                "varlen_sbhd_validation: made-up samples of varying length cannot be padded to S. "
                'Set it to False and leave out the option "format": "sbhd", or give a blend'
            )
        return rows

    @property
    def ragged(self) -> frozenset[str]:
        """Fields with one entry per token."""
        return FIELDS

    def _sample(self, row: int) -> tuple[Sample, LossFacts]:
        config = self.config
        tokens = self.dataset[row]
        sample = mock_single_sample(
            tokens, config.sequence_length, config.multiple, config.eod, config.pad
        )
        return sample, mock_facts(sample, tokens)
