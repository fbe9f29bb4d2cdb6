"""Token files, held to the reference's: read, and written again byte for byte."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from coredata.formats import IndexedDataset, IndexedDatasetBuilder, verify_indexed
from coredata.testing.compare import assert_same_array, assert_same_bytes
from coredata.testing.golden_vectors import GoldenCase, golden_directory


def assert_golden_indexed(case: GoldenCase, directory: Path) -> None:
    """The files of a case hold what went in; written again to `directory` they are the same.

    Raises:
        AssertionError: something differs; it names the file and the document or byte.
    """
    prefix = golden_directory(case.folder) / case.name
    _assert_read(case, prefix)
    again = directory / case.name
    _write(case, again)
    for suffix in (".idx", ".bin"):
        expected = prefix.with_name(case.name + suffix).read_bytes()
        actual = again.with_name(case.name + suffix).read_bytes()
        assert_same_bytes(actual, expected, f"{case}{suffix}, written again")


def _assert_read(case: GoldenCase, prefix: Path) -> None:
    """Every document, mapped and read by position."""
    given = case.settings
    multimodal = given["modes"] is not None
    verify_indexed(str(prefix))
    for mmap in (True, False):
        dataset = IndexedDataset(str(prefix), multimodal, mmap)
        counted = len(dataset.document_indices) - 1
        assert_same_array(counted, len(given["documents"]), f"{case}, number of documents")
        bounds = pairwise(dataset.document_indices.tolist())
        for number, (begin, end) in enumerate(bounds):
            what = f"{case}, document {number}"
            lengths = dataset.sequence_lengths[begin:end]
            expected = np.array(given["sequence_lengths"][number], np.int32)
            assert_same_array(lengths, expected, f"{what}, sequence lengths")
            parts = [np.asarray(_tokens(dataset, k, multimodal)) for k in range(begin, end)]
            tokens = np.concatenate([np.empty(0, given["dtype"]), *parts])
            assert_same_array(
                tokens, np.array(given["documents"][number], given["dtype"]), f"{what}, tokens"
            )
            if multimodal and dataset.sequence_modes is not None:
                modes = dataset.sequence_modes[begin:end]
                assert_same_array(modes, np.array(given["modes"][number], np.int8), f"{what}, mode")
        dataset.close()


def _tokens(dataset: IndexedDataset, sequence: int, multimodal: bool) -> np.ndarray:
    """The tokens of a sequence, without its mode."""
    item = dataset[sequence]
    return item[0] if multimodal else item


def _write(case: GoldenCase, prefix: Path) -> None:
    """The documents of a case, by this library's writer."""
    given = case.settings
    multimodal = given["modes"] is not None
    with IndexedDatasetBuilder(str(prefix), np.dtype(given["dtype"]), multimodal) as builder:
        for number, tokens in enumerate(given["documents"]):
            modes = given["modes"][number] if multimodal else None
            builder.add_document(tokens, given["sequence_lengths"][number], modes)
        builder.finalize()
