"""Contracts as asserts, small corpora and reference vectors, for your own pipelines' tests.

Strategies for Hypothesis are in `coredata.testing.strategies`, the reference vectors as checks in
`coredata.testing.golden_*`.
"""

from coredata.testing.arrays import ArrayDataset, numbered_dataset
from coredata.testing.blends import assert_blend_sequential, assert_blend_shares
from coredata.testing.compare import assert_same_array, assert_same_batch, assert_same_bytes
from coredata.testing.contract import assert_dataset_contract
from coredata.testing.corpora import flattened, random_corpus, read_tokens, write_corpus
from coredata.testing.golden_vectors import GoldenCase, golden_case, golden_cases, golden_directory
from coredata.testing.orders import assert_epoch_exact, assert_permutation, assert_tokens_exact
from coredata.testing.reference import (
    reference_blend,
    reference_gpt_indices,
    reference_randperm,
    reference_sequential_batches,
)
from coredata.testing.runs import assert_resume_exact, assert_same_global_batches

__all__ = [
    "ArrayDataset",
    "GoldenCase",
    "assert_blend_sequential",
    "assert_blend_shares",
    "assert_dataset_contract",
    "assert_epoch_exact",
    "assert_permutation",
    "assert_resume_exact",
    "assert_same_array",
    "assert_same_batch",
    "assert_same_bytes",
    "assert_same_global_batches",
    "assert_tokens_exact",
    "flattened",
    "golden_case",
    "golden_cases",
    "golden_directory",
    "numbered_dataset",
    "random_corpus",
    "read_tokens",
    "reference_blend",
    "reference_gpt_indices",
    "reference_randperm",
    "reference_sequential_batches",
    "write_corpus",
]
