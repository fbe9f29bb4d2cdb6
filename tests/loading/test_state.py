import json

import numpy as np
import pytest

from coredata.loading import (
    STATE_VERSION,
    StateMismatchError,
    fingerprint_differences,
    make_state,
    read_state,
)

FINGERPRINT = {"kind": "gpt", "samples": 12, "seed": 1234, "split": [0.0, 0.98]}


def test_round_trip_through_json():
    state = make_state(7, FINGERPRINT)
    assert state == {"version": STATE_VERSION, "consumed_samples": 7, "fingerprint": FINGERPRINT}
    assert read_state(json.loads(json.dumps(state)), FINGERPRINT) == 7


def test_counts_past_32_bits():
    assert read_state(make_state(2**40, FINGERPRINT), FINGERPRINT) == 2**40


def test_numpy_scalars_arrays_and_tuples_are_as_their_values():
    as_checkpointed = {
        "version": np.int64(1),
        "consumed_samples": np.asarray(7),
        "fingerprint": {
            "kind": "gpt",
            "samples": np.int64(12),
            "seed": np.asarray(1234),
            "split": (0.0, np.float64(0.98)),
        },
        "extra": "ignored",
    }
    assert read_state(as_checkpointed, FINGERPRINT) == 7
    made = make_state(7, {"samples": np.int64(12), "shares": np.array([0.5, 0.5])})
    assert json.loads(json.dumps(made)) == made


def test_another_dataset_is_refused_naming_each_difference():
    state = make_state(7, FINGERPRINT)
    other = {"kind": "gpt", "samples": 13, "seed": 1234, "length": 16}
    with pytest.raises(StateMismatchError) as raised:
        read_state(state, other)
    text = str(raised.value)
    assert "samples: the state has 12, this loader has 13" in text
    assert "split: the state has [0.0, 0.98], this loader has (absent)" in text
    assert "length: the state has (absent), this loader has 16" in text
    assert "seed" not in text
    assert "kind" not in text
    assert "sampler.resume(7)" in text
    assert isinstance(raised.value, ValueError)


def test_nested_fields_are_named_with_dots():
    saved = {"datasets": {"a": {"tokens": 1}, "b": {}}}
    present = {"datasets": {"a": {"tokens": 2}, "b": {}}}
    assert fingerprint_differences(saved, saved) == []
    assert fingerprint_differences(saved, present) == [
        "datasets.a.tokens: the state has 1, this loader has 2"
    ]
    assert fingerprint_differences({}, {"a": None}) == [
        "a: the state has (absent), this loader has null"
    ]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"version": 2}, "has version 2; this coredata reads version 1"),
        ({"version": "1"}, "version is '1', expected a whole number"),
        ({"consumed_samples": -1}, "consumed_samples is -1, expected a whole number, 0 or more"),
        ({"consumed_samples": 1.5}, r"consumed_samples is 1\.5"),
        ({"consumed_samples": True}, "consumed_samples is True"),
        ({"consumed_samples": None}, "consumed_samples is None"),
        ({"fingerprint": "abc"}, "fingerprint is a str, expected a dict"),
    ],
)
def test_malformed_states(change, match):
    with pytest.raises(ValueError, match=match):
        read_state({**make_state(7, FINGERPRINT), **change}, FINGERPRINT)


def test_a_part_is_missing():
    with pytest.raises(ValueError, match=r"lacks version, fingerprint; it has the keys \['cons"):
        read_state({"consumed_samples": 7}, FINGERPRINT)


def test_not_a_mapping():
    with pytest.raises(TypeError, match=r"a loader state is a dict.*got int"):
        read_state(7, FINGERPRINT)


def test_a_fingerprint_that_json_cannot_hold():
    with pytest.raises(TypeError, match="a fingerprint holds a set"):
        make_state(7, {"names": {"a"}})
