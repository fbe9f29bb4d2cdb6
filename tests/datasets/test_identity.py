"""Descriptions: what `json.dumps` writes, whatever is in them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.datasets.identity import describe
from coredata.text import ByteTokenizer

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just("a\nb\u2028é")
)
KEYS = st.text(max_size=4) | st.integers() | st.booleans() | st.none()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


def by_the_standard_library(identifiers):
    return json.dumps(identifiers, indent=4, default=lambda value: value.unique_identifiers)


@given(identifiers=st.dictionaries(st.text(max_size=6), VALUES, max_size=5))
def test_text_is_that_of_the_standard_library(identifiers):
    assert describe(identifiers) == by_the_standard_library(identifiers)


def test_the_same_objects_in_many_places():
    shared, tokenizer = [[0, 0.9], None, ["é", {}]], ByteTokenizer()
    parts = [{"path": str(i), "split": shared, "tokenizer": tokenizer} for i in range(4)]
    nested = {
        "datasets": parts,
        "split": shared,
        "tokenizer": tokenizer,
        "more": [shared, [shared]],
    }
    assert describe(nested) == by_the_standard_library(nested)


def test_equal_values_of_different_types_and_lists_of_anything():
    for value in ([1, 0], [1.0, 0], [True, False], [[1], [True]], [np.float64(1), 1], (1, 0.0)):
        assert describe({"a": value}) == by_the_standard_library({"a": value})
    with pytest.raises(TypeError, match="Give the tokenizer unique_identifiers"):
        describe({"tokenizers": [b"bytes"]})


def test_odd_numbers():
    odd = {"a": math.nan, "b": [math.inf, -0.0, True, False], "c": np.float64(0.1), "d": 10**30}
    assert describe(odd) == by_the_standard_library(odd)
    assert describe({}) == "{}"


def test_what_is_no_json():
    with pytest.raises(TypeError, match="Give the tokenizer unique_identifiers"):
        describe({"tokenizer": object()})


class Fresh:
    """Makes its identifiers anew whenever it is asked."""

    def __init__(self, number):
        self.number = number

    @property
    def unique_identifiers(self):
        return {"numbers": [{"number": self.number}, None, [self.number] * 20]}


def test_identifiers_that_are_made_anew_are_not_mixed_up():
    identifiers = {"of": [Fresh(i) for i in range(50)]}
    expected = json.dumps(identifiers, indent=4, default=lambda fresh: fresh.unique_identifiers)
    assert describe(identifiers) == expected


def test_known_texts_of_parts_are_indented():
    part = {"class": "A\n", "of": [1, {"b": None}], "tokenizer": ByteTokenizer()}
    whole = {"datasets": [part, dict(part)], "first": part}
    assert describe(whole, [(part, describe(part))]) == by_the_standard_library(whole)
    assert describe({"a": [part]}, [(part, '{\n    "short": 1\n}')]) == by_the_standard_library(
        {"a": [{"short": 1}]}
    )
