"""Contracts as asserts, small corpora and reference vectors, for your own pipelines' tests."""

from coredata.testing.arrays import ArrayDataset, numbered_dataset

__all__ = ["ArrayDataset", "numbered_dataset"]
