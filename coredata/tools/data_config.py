"""From flags to a dataset class and the fields of its configuration."""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from coredata import datasets
from coredata.tools.data_blend import read_named
from coredata.tools.data_sizes import data_parallel_size

FLAG_OF = {
    "random_seed": "--seed",
    "sequence_length": "--seq-length",
    "sequence_length_decoder": "--decoder-seq-length",
    "path_to_cache": "--data-cache-path",
    "num_dataset_builder_threads": "--num-dataset-builder-threads",
    "mid_level_dataset_surplus": "--mid-level-dataset-surplus",
    "split": "--split",
    "tokenizer": "--tokenizer-model or --tokenizer-type",
    "masking_probability": "--mask-prob",
    "short_sequence_probability": "--short-seq-prob",
    "masking_do_full_word": "--no-masking-full-word",
    "masking_word_start": "--masking-word-start",
    "reset_position_ids": "--reset-position-ids",
    "reset_attention_mask": "--reset-attention-mask",
    "eod_mask_loss": "--eod-mask-loss",
    "inter_document_masking": "--inter-document-masking",
    "segment_ids": "--segment-ids",
    "fim_rate": "--fim-rate",
    "fim_spm_rate": "--fim-spm-rate",
    "fim_split_sample": "--fim-fragment-rate",
    "fim_fragment_rate": "--fim-fragment-rate",
    "sequences_per_dataset": "--per-dataset-sequences-path",
}
"""Fields of configurations whose errors name them, and the flag that sets each."""


def dataset_class(args: argparse.Namespace) -> tuple[Any, Any]:
    """The class of the datasets, and of their configuration."""
    if args.dataset == "bert":
        return datasets.BERTMaskedWordPieceDataset, datasets.BERTMaskedWordPieceDatasetConfig
    if args.dataset == "t5":
        return datasets.T5MaskedWordPieceDataset, datasets.T5MaskedWordPieceDatasetConfig
    if args.sft:
        return _either(
            args, datasets.MockSFTDataset, datasets.SFTDataset
        ), datasets.SFTDatasetConfig
    if args.use_varlen_dataset:
        chosen = _either(args, datasets.MockVarlenDataset, datasets.VarlenDataset)
        return chosen, datasets.VarlenDatasetConfig
    if args.fim_data:
        return datasets.GPTFIMDataset, datasets.GPTFIMDatasetConfig
    return _either(args, datasets.MockGPTDataset, datasets.GPTDataset), datasets.GPTDatasetConfig


def with_flag(error: ValueError | TypeError) -> ValueError:
    """An error of a configuration, with the flag that sets the field which it begins with."""
    flag = FLAG_OF.get(str(error).partition(":")[0].partition("=")[0])
    return ValueError(str(error) if flag is None else f"{error} (flag: {flag})")


def _either(args: argparse.Namespace, mock: Any, real: Any) -> Any:
    return mock if args.mock_data else real


def config_fields(args: argparse.Namespace) -> dict[str, Any]:
    """The configuration's fields, but for blends, split and tokenizer.

    Raises:
        ValueError: a file of counts that is none.
        FileNotFoundError: no such file.
    """
    return {**_common_fields(args), **_kind_fields(args)}


def _common_fields(args: argparse.Namespace) -> dict[str, Any]:
    length = args.encoder_seq_length if args.seq_length is None else args.seq_length
    return {
        "random_seed": args.seed,
        "sequence_length": length,
        "multiple_validation_sets": args.multiple_validation_sets,
        "full_validation": args.full_validation,
        "num_dataset_builder_threads": args.num_dataset_builder_threads,
        "path_to_cache": args.data_cache_path,
        "mmap_bin_files": args.mmap_bin_files,
        "mid_level_dataset_surplus": args.mid_level_dataset_surplus,
        "allow_ambiguous_pad_tokens": args.allow_ambiguous_pad_tokens,
        "fast_cache_load": args.dataloader_fast_cache_load,
        "defer_npy_index_mmap": args.dataloader_defer_npy_index_mmap,
    }


def _kind_fields(args: argparse.Namespace) -> dict[str, Any]:
    if args.dataset != "gpt":
        return _masked_fields(args)
    fields: dict[str, Any] = {
        "create_attention_mask": args.create_attention_mask_in_dataloader,
        "object_storage_cache_path": args.object_storage_cache_path,
        "reset_position_ids": args.reset_position_ids,
        "reset_attention_mask": args.reset_attention_mask,
        "eod_mask_loss": args.eod_mask_loss,
        "inter_document_masking": args.inter_document_masking,
        "segment_ids": args.segment_ids,
        "output_dtype": args.output_dtype,
        "sequences_per_dataset": _sequences(args.per_dataset_sequences_path),
        "context_parallel_size": args.context_parallel_size,
        "data_parallel_size": data_parallel_size(args),
        "sequence_parallel_size": args.tensor_model_parallel_size * args.sequence_parallel,
        "hybrid_context_parallel": args.hybrid_context_parallel,
    }
    if args.fim_data:
        fields |= _infilling_fields(args)
    if args.sft or args.use_varlen_dataset:
        fields |= {
            "dynamic_context_parallel": args.dynamic_context_parallel,
            "sft_mock_dataset_config_json": args.sft_mock_dataset_config_json,
            "skip_bad_rows": args.skip_bad_rows,
            "samples_without_loss": args.samples_without_loss,
        }
    if args.use_varlen_dataset:
        fields["varlen_mock_dataset_config_json"] = args.varlen_mock_dataset_config_json
        fields["varlen_sbhd_validation"] = args.varlen_sbhd_validation
    return fields


def _masked_fields(args: argparse.Namespace) -> dict[str, Any]:
    fields = {
        "masking_probability": args.mask_prob,
        "short_sequence_probability": args.short_seq_prob,
        "masking_word_start": args.masking_word_start,
        "masking_do_full_word": args.masking_do_full_word,
    }
    if args.dataset == "bert":
        return {**fields, "classification_head": args.bert_binary_head}
    return {
        **fields,
        "sequence_length_decoder": args.decoder_seq_length,
        "create_attention_mask": args.create_attention_mask_in_dataloader,
    }


def _infilling_fields(args: argparse.Namespace) -> dict[str, Any]:
    names = ("prefix", "middle", "suffix", "pad", "eod")
    return {
        "fim_rate": args.fim_rate,
        "fim_spm_rate": args.fim_spm_rate,
        "fim_split_sample": args.fim_split_sample,
        "fim_fragment_rate": args.fim_fragment_rate,
        "fim_no_prefix": args.fim_no_prefix,
        "fim_extra_tokens": {name: getattr(args, f"fim_{name}_token") for name in names},
        "randomness": args.fim_randomness,
    }


def _sequences(path: str | None) -> Mapping[str, Sequence[int]] | None:
    """What `coredata sequences` wrote."""
    if path is None:
        return None
    try:
        found: Any = json.loads(read_named(path, "--per-dataset-sequences-path"))
    except ValueError as error:
        raise ValueError(f"--per-dataset-sequences-path {path} is not JSON: {error}") from error
    if not isinstance(found, Mapping):
        raise ValueError(
            f"--per-dataset-sequences-path {path} holds no object; `coredata sequences` writes one"
        )
    return found
