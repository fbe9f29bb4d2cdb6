"""Blends, splits and blend lists, held to the reference's."""

from typing import Any

import numpy as np

from coredata.blending import (
    build_blending_indices,
    build_exhaustive_blending_indices,
    get_blend_from_list,
    normalize,
)
from coredata.indices import convert_split_vector_to_split_matrix, parse_and_normalize_split
from coredata.testing.compare import assert_same_array
from coredata.testing.golden_vectors import GoldenCase

OTHER_BLEND_CASES = ("builder", "splits")
"""Cases of the folder that are not a blend by itself."""


def golden_blend(case: GoldenCase) -> tuple[np.ndarray, np.ndarray]:
    """dataset_index and dataset_sample_index, built by this library from a case's settings."""
    if case.settings["kind"] == "exhaustive":
        return build_exhaustive_blending_indices(case.arrays["sizes"].tolist())
    weights = normalize(case.arrays["weights"].tolist())
    return build_blending_indices(weights, case.settings["size"])


def assert_golden_blend(case: GoldenCase) -> None:
    """The indices of a case are the reference's.

    Raises:
        AssertionError: they are not; it names the index and the first sample that differs.
    """
    for name, actual in zip(
        ("dataset_index", "dataset_sample_index"), golden_blend(case), strict=True
    ):
        assert_same_array(actual, case.arrays[name], f"{case}, {name}")


def assert_golden_splits(case: GoldenCase) -> None:
    """Split strings, matrices, overlaps and blend lists are the reference's.

    Raises:
        AssertionError: one is not; it names the string.
    """
    for item in case.settings["splits"]:
        vector = parse_and_normalize_split(item["split"])
        _same(vector, item["vector"], f"{case}, shares of {item['split']!r}")
        matrix = convert_split_vector_to_split_matrix(vector)
        _same(_lists(matrix), item["matrix"], f"{case}, split matrix of {item['split']!r}")
    for item in case.settings["cross"]:
        vectors = [parse_and_normalize_split(item[name]) for name in ("a", "b")]
        matrix = convert_split_vector_to_split_matrix(*vectors)
        _same(_lists(matrix), item["matrix"], f"{case}, overlap of {item['a']} and {item['b']}")
    for item in case.settings["blend_lists"]:
        prefixes, weights = get_blend_from_list(item["blend"]) or (None, None)
        _same([prefixes, weights], item["parsed"], f"{case}, blend list {item['blend']}")


def _lists(matrix: Any) -> Any:
    """Tuples as the lists that JSON has."""
    return [None if bounds is None else list(bounds) for bounds in matrix]


def _same(actual: Any, expected: Any, what: str) -> None:
    if actual != expected:
        raise AssertionError(f"{what}: is {actual}, expected {expected}")
