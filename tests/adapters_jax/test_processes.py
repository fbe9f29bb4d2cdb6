"""Batches, ranks and the check of plans in two real processes of one JAX program."""

from pathlib import Path

import pytest

from coredata.testing import random_corpus, write_corpus

PROGRAM = Path(__file__).parent / "inside" / "two_processes.py"


@pytest.mark.slow
def test_two_processes(tmp_path, free_port, run_jax):
    port = free_port()
    write_corpus(tmp_path / "corpus", random_corpus(7, documents=60, longest=40))
    run_jax([[PROGRAM, process, port, tmp_path] for process in range(2)], devices=4)
    assert sorted(path.name for path in tmp_path.glob("done-*")) == ["done-0.json", "done-1.json"]
