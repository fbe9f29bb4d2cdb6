"""The three indices of every reference case, bit for bit."""

import json
from importlib.resources import files

import numpy as np
import pytest

from coredata.indices import build_gpt_indices

GOLDEN = files("coredata") / "testing/golden" / "gpt"
OTHER = {"cache_identity", "mock"}
CASES = sorted(p.name[:-5] for p in GOLDEN.iterdir() if p.name.endswith(".json"))
CASES = [name for name in CASES if name not in OTHER]


def test_golden_cases_are_there():
    assert len(CASES) == 20


@pytest.mark.parametrize("name", CASES)
def test_indices_match_the_reference(name):
    settings = json.loads((GOLDEN / f"{name}.json").read_text())
    with (GOLDEN / f"{name}.npz").open("rb") as file:
        arrays = dict(np.load(file, allow_pickle=False))
    indices = build_gpt_indices(
        arrays["doc_lengths"],
        arrays["indices"],
        settings["num_samples"],
        settings["sequence_length"],
        settings["random_seed"],
        add_extra_token=settings["add_extra_token_to_sequence"],
        drop_last_partial_sequence=settings["index_split"] != "valid"
        or settings["drop_last_partial_validation_sequence"],
    )
    for field in ("document_index", "sample_index", "shuffle_index"):
        ours, theirs = getattr(indices, field), arrays[field]
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
