"""Made-up packs, for benchmarks and first runs."""

from typing import final

import numpy as np

from coredata._typing import Integer
from coredata.datasets.protocol import Sample
from coredata.datasets.rows_dataset import FIELDS, RowDataset
from coredata.datasets.rows_mock import MockRows, build_mock_rows
from coredata.datasets.sft_config import SFTDatasetConfig
from coredata.indices import Split
from coredata.varlen import LossFacts, mock_fixed_sample, mock_packed_sample


@final
class MockSFTDataset(RowDataset):
    """Packs of one made-up conversation each, of lengths as `sft_mock_dataset_config_json` says.

    See `coredata.varlen.mock_packed_sample` for the fields; with its option `format` "sbhd",
    `mock_fixed_sample`.

    Raises:
        ValueError: a configuration with a blend.
    """

    def __init__(
        self,
        source: MockRows,
        dataset_path: str | None,
        indices: Integer[np.ndarray, " rows"],
        num_samples: int | None,
        index_split: Split,
        config: SFTDatasetConfig,
    ) -> None:
        require_mock(config, "MockSFTDataset", "SFTDataset")
        super().__init__(source, dataset_path, indices, num_samples, index_split, config)

    @staticmethod
    def build_low_level_dataset(dataset_path: str | None, config: SFTDatasetConfig) -> MockRows:
        """The made-up rows; the path means nothing."""
        return build_mock_rows(config)

    @property
    def ragged(self) -> frozenset[str]:
        """Fields with one entry per token, unless samples are padded to S."""
        return frozenset() if self._fixed else FIELDS

    @property
    def _fixed(self) -> bool:
        return self.dataset.options.format == "sbhd"

    def _sample(self, row: int) -> tuple[Sample, LossFacts]:
        config = self.config
        tokens = self.dataset[row]
        length, eod, pad = config.sequence_length, config.eod, config.pad
        if self._fixed:
            sample = mock_fixed_sample(tokens, length, eod, pad)
        else:
            sample = mock_packed_sample(tokens, length, config.multiple, eod, pad)
        return sample, mock_facts(sample, tokens)


def require_mock(config: SFTDatasetConfig, name: str, instead: str) -> None:
    """Refuse a configuration that names data.

    Raises:
        ValueError: it does.
    """
    if not config.mock:
        raise ValueError(
            f"config: it names data (blend or blend_per_split), but {name} makes its own. Use "
            f"{instead}, or a configuration without a blend"
        )


def mock_facts(sample: Sample, tokens: np.ndarray) -> LossFacts:
    """What a made-up sample bears of loss: every label but the first token does, the end too."""
    return LossFacts(len(tokens), int(sample["loss_mask"].sum()))
