"""The reference vectors that ship with the package, as checks."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from coredata.testing.checks import Check
from coredata.testing.golden_blend import (
    OTHER_BLEND_CASES,
    assert_golden_blend,
    assert_golden_splits,
)
from coredata.testing.golden_builder import assert_golden_builder
from coredata.testing.golden_gpt import (
    OTHER_GPT_CASES,
    assert_golden_cache_identity,
    assert_golden_gpt,
    assert_golden_mock,
)
from coredata.testing.golden_indexed import assert_golden_indexed
from coredata.testing.golden_preprocess import assert_golden_preprocess
from coredata.testing.golden_samplers import assert_golden_samplers
from coredata.testing.golden_vectors import GoldenCase, golden_case, golden_cases

GROUP = "Reference vectors"


def golden_checks() -> list[Check]:
    """One check for each kind of vector. Nothing runs, or is read, before a check does."""
    return [
        Check(GROUP, "token files", _indexed),
        Check(GROUP, "text to token files", _preprocess),
        Check(GROUP, "GPT indices and samples", _gpt),
        Check(GROUP, "mock data", _one("gpt", "mock", assert_golden_mock, "3 splits")),
        Check(
            GROUP,
            "cache names",
            _one("gpt", "cache_identity", assert_golden_cache_identity, "3 descriptions, hashes"),
        ),
        Check(
            GROUP,
            "splits and blend lists",
            _one("blend", "splits", assert_golden_splits, "strings, matrices, overlaps, lists"),
        ),
        Check(GROUP, "blends", _blends),
        Check(GROUP, "dataset builder", _builder),
        Check(
            GROUP,
            "samplers and randperm",
            _one("samplers", "samplers", assert_golden_samplers, "4 samplers, every rank"),
        ),
    ]


def _one(
    folder: str, name: str, check: Callable[[GoldenCase], None], covered: str
) -> Callable[[], str]:
    """A check of a single case."""

    def run() -> str:
        check(golden_case(folder, name))
        return covered

    return run


def _indexed() -> str:
    cases = golden_cases("indexed")
    with tempfile.TemporaryDirectory() as directory:
        for case in cases:
            assert_golden_indexed(case, Path(directory))
    return f"{len(cases)} pairs, read, and written byte for byte"


def _preprocess() -> str:
    with tempfile.TemporaryDirectory() as directory:
        pairs = assert_golden_preprocess(Path(directory))
    return f"{pairs} pairs from JSON lines, byte for byte"


def _gpt() -> str:
    cases = golden_cases("gpt", without=OTHER_GPT_CASES)
    for case in cases:
        assert_golden_gpt(case)
    return f"{len(cases)} corpora and settings, every field"


def _blends() -> str:
    cases = golden_cases("blend", without=OTHER_BLEND_CASES)
    for case in cases:
        assert_golden_blend(case)
    return f"{len(cases)} weighted and exhaustive blends"


def _builder() -> str:
    case = golden_case("blend", "builder")
    with tempfile.TemporaryDirectory() as directory:
        runs = assert_golden_builder(case, Path(directory))
    return f"{runs} builder runs over three files"
