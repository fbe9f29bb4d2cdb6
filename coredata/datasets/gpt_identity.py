"""What identifies a GPT dataset, in the reference's order of keys."""

from typing import Any

from coredata.datasets.gpt_config import GPTDatasetConfig
from coredata.datasets.identity import KEY_CONFIG_ATTRIBUTES
from coredata.indices import SEPARATE_FINAL_EPOCH_THRESHOLD, Split


def gpt_identifiers(
    class_name: str,
    dataset_path: str | None,
    num_samples: int | None,
    index_split: Split,
    config: GPTDatasetConfig,
) -> dict[str, Any]:
    """What the index cache of a dataset is named by: the reference's keys, then `order_options`."""
    return {
        "class": class_name,
        "dataset_path": dataset_path,
        "num_samples": num_samples,
        "index_split": index_split.name,
        **{name: getattr(config, name) for name in KEY_CONFIG_ATTRIBUTES},
        **order_options(config, index_split),
    }


def order_options(config: GPTDatasetConfig, index_split: Split) -> dict[str, Any]:
    """Options that change the order of samples but are missing from the reference's cache keys.

    Only those that differ from its defaults, so that with defaults the keys are the same.
    """
    options: dict[str, Any] = {}
    if not config.add_extra_token_to_sequence:
        options["add_extra_token_to_sequence"] = False
    if not drops_last_partial_sequence(config, index_split):
        options["drop_last_partial_validation_sequence"] = False
    if config.separate_final_epoch_threshold != SEPARATE_FINAL_EPOCH_THRESHOLD:
        options["separate_final_epoch_threshold"] = config.separate_final_epoch_threshold
    return options


def drops_last_partial_sequence(config: GPTDatasetConfig, index_split: Split) -> bool:
    """Whether a short last sample is left out; only validation may keep it."""
    return index_split is not Split.valid or config.drop_last_partial_validation_sequence
