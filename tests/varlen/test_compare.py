"""How full rows get on lengths as they are found in practice; `pytest -s` prints the tables."""

import numpy as np
import pytest

from coredata.varlen import compare_packers, pack, packing_table

RANDOM = np.random.RandomState(1234)
COUNT = 20_000
LENGTHS = {
    "web pages (lognormal, mean 1000)": RANDOM.lognormal(np.log(1000) - 0.72, 1.2, COUNT),
    "conversations (lognormal, mean 1600)": RANDOM.lognormal(np.log(1600) - 0.32, 0.8, COUNT),
    "code files (pareto)": 200 * (1 + RANDOM.pareto(1.3, COUNT)),
    "uniform": RANDOM.uniform(1, 4096, COUNT),
    "short answers (geometric, mean 80)": RANDOM.geometric(1 / 80, COUNT),
    "two kinds": np.where(RANDOM.rand(COUNT) < 0.8, 150, 3000) + RANDOM.randint(0, 99, COUNT),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_efficiency(name):
    lengths = np.maximum(LENGTHS[name].astype(np.int64), 1)
    reports = {r.packer: r for r in compare_packers(lengths, 4096)}
    print(f"\n{name}, rows of 4096\n{packing_table(list(reports.values()))}")
    best = reports["best_fit_decreasing"]
    if name != "two kinds":  # rows of one long and some short ones have a gap nothing fits
        assert best.rows <= best.bound * 1.02
    assert best.rows <= min(report.rows for report in reports.values())
    assert reports["best_fit"].rows < reports["next_fit"].rows
    assert all(report.rows >= report.bound for report in reports.values())


def test_the_bound_counts_segments_too():
    (report,) = compare_packers(np.ones(10, np.int64), 4096, packers=["first_fit"], max_segments=3)
    assert (report.rows, report.bound, report.largest_row) == (4, 4, 3)


def test_lost_tokens_are_reported():
    (report,) = compare_packers(np.array([5, 15]), 10, packers=["best_fit"], overflow="truncate")
    assert report.lost_tokens == 5
    assert "best_fit" in packing_table([report])


def test_nothing_needs_no_rows():
    assert compare_packers(np.empty(0, np.int64), 10)[0].bound == 0


@pytest.mark.slow
def test_a_million_lengths_take_seconds_not_minutes():
    plan = pack(RANDOM.randint(1, 4096, 1_000_000), 4096, max_segments=64)
    assert plan.efficiency > 0.99
