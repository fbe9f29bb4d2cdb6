"""Large data are looked at up to a limit; what an optional package is missing for is said."""

import sys

import numpy as np
import pytest

from coredata.indices import IndexedOrder, build_gpt_indices
from coredata.testing import (
    assert_epoch_exact,
    checks_data,
    random_corpus,
    strategies,
    write_corpus,
)
from coredata.testing.checks_data import DataSettings, run_data_checks


def test_a_long_dataset_is_looked_at_up_to_the_limit(tmp_path, monkeypatch):
    prefix = write_corpus(tmp_path / "mine", random_corpus(1))
    monkeypatch.setattr(checks_data, "MOST_SAMPLES", 10)
    monkeypatch.setattr(checks_data, "MOST_TOKENS", 10)
    (result,) = [
        result
        for result in run_data_checks(DataSettings([prefix], sequence_length=16))
        if result.name == "every token once per epoch"
    ]
    assert result.passed, result.failure
    assert result.covered.startswith("10 of ")
    assert result.covered.endswith(" samples of 16, plan only")


def test_the_first_samples_of_an_order():
    lengths = np.array([30, 10, 25, 40, 15, 60], np.int32)
    documents = np.arange(6, dtype=np.int32)
    order = IndexedOrder(build_gpt_indices(lengths, documents, None, 8, 1), lengths, 8, True)
    for first in (0, 1, 10, len(order), 1000):
        assert_epoch_exact(order, lengths, sequence_length=8, first=first)
    twice = build_gpt_indices(lengths, documents, 40, 8, 1)
    order = IndexedOrder(twice, lengths, 8, True)
    assert_epoch_exact(order, lengths, sequence_length=8, first=30, epochs=2)
    with pytest.raises(AssertionError, match="more often than in 1 epochs"):
        assert_epoch_exact(order, lengths, sequence_length=8, first=30)


@pytest.mark.parametrize("make", ["corpora", "gpt_settings", "blend_weights"])
def test_strategies_without_hypothesis(monkeypatch, make):
    monkeypatch.setitem(sys.modules, "hypothesis.strategies", None)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'coredata\[test\]'"):
        getattr(strategies, make)()
