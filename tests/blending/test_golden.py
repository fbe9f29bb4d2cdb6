"""Bit for bit what the reference gave."""

import json
from importlib.resources import files

import numpy as np
import pytest

from coredata.blending import (
    build_blending_indices,
    build_exhaustive_blending_indices,
    get_blend_from_list,
)

BLEND = files("coredata.testing") / "golden" / "blend"
SETTINGS = {
    path.name.removesuffix(".json"): json.loads(path.read_text())
    for path in BLEND.iterdir()
    if path.name.endswith(".json")
}
INDICES = sorted(name for name, settings in SETTINGS.items() if "kind" in settings)


def test_all_are_there():
    kinds = [SETTINGS[name]["kind"] for name in INDICES]
    assert (kinds.count("weighted"), kinds.count("exhaustive")) == (8, 4)


@pytest.mark.parametrize("name", INDICES)
def test_indices(name):
    arrays = np.load(str(BLEND / f"{name}.npz"), allow_pickle=False)
    if SETTINGS[name]["kind"] == "weighted":
        found = build_blending_indices(arrays["weights"].tolist(), SETTINGS[name]["size"])
    else:
        found = build_exhaustive_blending_indices(arrays["sizes"].tolist())
    for key, array in zip(("dataset_index", "dataset_sample_index"), found, strict=True):
        np.testing.assert_array_equal(array, arrays[key], strict=True)


@pytest.mark.parametrize("case", SETTINGS["splits"]["blend_lists"])
def test_blend_lists(case):
    prefixes, weights = case["parsed"]
    assert get_blend_from_list(case["blend"]) == (prefixes, weights)
