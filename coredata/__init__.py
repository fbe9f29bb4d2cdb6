"""Training data for language models: from text to the batch, in Megatron's format and order.

The names below are loaded on first use, so that `import coredata` costs milliseconds:

    IndexedDataset, IndexedDatasetBuilder        .bin/.idx files (coredata.formats)
    GPTDatasetConfig, GPTDataset, MockGPTDataset, BERTMaskedWordPieceDataset,
    T5MaskedWordPieceDataset and their configurations, BlendedDataset,
    BlendedMegatronDatasetBuilder, Split         samples (coredata.datasets)
    MegatronPretrainingSampler, ...              which rank takes what (coredata.sampling)
    BatchLoader                                  batches with prefetch and state (coredata.loading)
    load_tokenizer                               tokenizers (coredata.text)
    add_data_arguments, datasets_from_args       from Megatron-LM's flags to datasets

"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coredata.datasets import (
        BERTMaskedWordPieceDataset,
        BERTMaskedWordPieceDatasetConfig,
        BlendedDataset,
        BlendedMegatronDatasetBuilder,
        GPTDataset,
        GPTDatasetConfig,
        GPTFIMDataset,
        GPTFIMDatasetConfig,
        MockGPTDataset,
        T5MaskedWordPieceDataset,
        T5MaskedWordPieceDatasetConfig,
    )
    from coredata.formats import IndexedDataset, IndexedDatasetBuilder
    from coredata.indices import Split
    from coredata.loading import BatchLoader
    from coredata.sampling import (
        GlobalBatchSampler,
        MegatronPretrainingRandomSampler,
        MegatronPretrainingSampler,
    )
    from coredata.text import load_tokenizer
    from coredata.tools.data_arguments import add_data_arguments, datasets_from_args

__version__ = "0.1.0"

_ROOM_OF = {
    "BERTMaskedWordPieceDataset": "datasets",
    "BERTMaskedWordPieceDatasetConfig": "datasets",
    "BlendedDataset": "datasets",
    "BlendedMegatronDatasetBuilder": "datasets",
    "GPTDataset": "datasets",
    "GPTDatasetConfig": "datasets",
    "GPTFIMDataset": "datasets",
    "GPTFIMDatasetConfig": "datasets",
    "MockGPTDataset": "datasets",
    "T5MaskedWordPieceDataset": "datasets",
    "T5MaskedWordPieceDatasetConfig": "datasets",
    "IndexedDataset": "formats",
    "IndexedDatasetBuilder": "formats",
    "Split": "indices",
    "BatchLoader": "loading",
    "GlobalBatchSampler": "sampling",
    "MegatronPretrainingRandomSampler": "sampling",
    "MegatronPretrainingSampler": "sampling",
    "load_tokenizer": "text",
    "add_data_arguments": "tools.data_arguments",
    "datasets_from_args": "tools.data_arguments",
}

__all__ = [
    "BERTMaskedWordPieceDataset",
    "BERTMaskedWordPieceDatasetConfig",
    "BatchLoader",
    "BlendedDataset",
    "BlendedMegatronDatasetBuilder",
    "GPTDataset",
    "GPTDatasetConfig",
    "GPTFIMDataset",
    "GPTFIMDatasetConfig",
    "GlobalBatchSampler",
    "IndexedDataset",
    "IndexedDatasetBuilder",
    "MegatronPretrainingRandomSampler",
    "MegatronPretrainingSampler",
    "MockGPTDataset",
    "Split",
    "T5MaskedWordPieceDataset",
    "T5MaskedWordPieceDatasetConfig",
    "__version__",
    "add_data_arguments",
    "datasets_from_args",
    "load_tokenizer",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'coredata' has no attribute {name!r}; it has: {__all__}")
    return getattr(import_module(f"coredata.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
