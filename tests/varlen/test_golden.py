"""Schedules and packed microbatches of the reference, bit for bit."""

import json
from importlib.resources import files

import numpy as np
import pytest

from coredata.varlen import dp_balanced, pack_samples, rank_groups

GOLDEN = files("coredata.testing") / "golden" / "packing"
SETTINGS = json.loads((GOLDEN / "dp_balanced.json").read_text())
NAMES = ("max_seqlen_per_dp_cp_rank", "dp", "cp", "microbatch_group_size_per_vp_stage")


def schedule(case):
    return dp_balanced(np.array(case["seqlens"]), *(case.get(name) for name in NAMES))


def test_golden_cases_are_there():
    assert (len(SETTINGS["cases"]), len(SETTINGS["failures"])) == (6, 2)
    assert len(SETTINGS["pack_groups"]) == 4


@pytest.mark.parametrize("case", SETTINGS["cases"])
def test_schedules_match_the_reference(case):
    groups = rank_groups(schedule(case), case["dp"], case["cp"])
    assert groups == case["groups"]


@pytest.mark.parametrize("case", SETTINGS["failures"])
def test_too_few_samples_are_refused(case):
    count, packs = len(case["seqlens"]), case["dp"]
    with pytest.raises(ValueError, match=f"^{count} samples are not enough: .* of {packs} packs"):
        schedule(case)


@pytest.mark.parametrize("number", range(4))
def test_microbatches_match_the_reference(number):
    with (GOLDEN / "dp_balanced.npz").open("rb") as file:
        arrays = dict(np.load(file, allow_pickle=False))
    expected = {k[2:]: v for k, v in arrays.items() if k[0] == str(number)}
    samples = []
    for i in SETTINGS["pack_groups"][number]:
        padded = SETTINGS["padded"][i]
        positions = np.arange(padded)
        samples.append(
            {
                "tokens": 100 * i + positions,
                "labels": 100 * i + positions + 1,
                "loss_mask": np.ones(padded, np.float32),
                "position_ids": positions,
                "original_seq_len": np.array([SETTINGS["original"][i]], np.int32),
                "padded_seq_len": np.array([padded], np.int32),
            }
        )
    packed = pack_samples(samples)
    assert set(packed) == set(expected)
    for name, array in expected.items():
        assert (packed[name].dtype, packed[name].shape) == (array.dtype, array.shape), name
        np.testing.assert_array_equal(packed[name], array)
