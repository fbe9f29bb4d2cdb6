import json
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.indices import (
    convert_split_vector_to_split_matrix,
    parse_and_normalize_split,
    split_range,
)

GOLDEN = json.loads((files("coredata") / "testing/golden/blend/splits.json").read_text())


def as_json(matrix):
    return [None if bookends is None else list(bookends) for bookends in matrix]


def test_golden_is_there():
    assert len(GOLDEN["splits"]) == 10
    assert len(GOLDEN["cross"]) == 3


@pytest.mark.parametrize("case", GOLDEN["splits"], ids=lambda case: case["split"])
def test_split_strings_match_the_reference(case):
    vector = parse_and_normalize_split(case["split"])
    assert vector == case["vector"]
    matrix = convert_split_vector_to_split_matrix(vector)
    # As text: the integer 0 that begins the first split goes into cache descriptions.
    assert json.dumps(as_json(matrix)) == json.dumps(case["matrix"])


@pytest.mark.parametrize("case", GOLDEN["cross"], ids=lambda case: f"{case['a']} x {case['b']}")
def test_overlaps_match_the_reference(case):
    a, b = parse_and_normalize_split(case["a"]), parse_and_normalize_split(case["b"])
    matrix = convert_split_vector_to_split_matrix(a, b)
    assert json.dumps(as_json(matrix)) == json.dumps(case["matrix"])


@pytest.mark.parametrize(
    ("split", "shares"),
    [
        ("1e2,0,0", [1.0, 0.0, 0.0]),
        ("80/20", [0.8, 0.2, 0.0]),
        (" 2 1\t1 ", [0.5, 0.25, 0.25]),
        (".5 , 1. /0.5", [0.25, 0.5, 0.25]),
        ("+3,1", [0.75, 0.25, 0.0]),
        ("5E-1, 5e-1", [0.5, 0.5, 0.0]),
    ],
)
def test_ways_to_write_a_split(split, shares):
    assert parse_and_normalize_split(split) == shares


@pytest.mark.parametrize(
    ("split", "problem"),
    [
        ("-1,1,0", r"split: '-1' in '-1,1,0' is negative"),
        ("90,abc5,5", r"'abc5' in '90,abc5,5' is not a finite number"),
        ("0,0,0", r"all shares in '0,0,0' are zero"),
        ("nan,1,0", r"'nan' in 'nan,1,0' is not a finite number"),
        ("inf,1", r"'inf' in 'inf,1' is not a finite number"),
        ("1e999,1", r"'1e999' in '1e999,1' is not a finite number"),
        ("1e308,1e308,1e308", r"sum to inf"),
        ("", r"'' in '' is not a finite number"),
        ("1,,1", r"'' in '1,,1' is not a finite number"),
        ("1,1,", r"'' in '1,1,' is not a finite number"),
        ("1,1,1,1", r"'1,1,1,1' has 4 numbers, but there are 3 splits"),
        ("1;1", r"'1;1' in '1;1' is not a finite number"),
        ("1_0,1", r"'1_0' in '1_0,1' is not a finite number"),
        ("1.2.3,1", r"'1.2.3' in '1.2.3,1' is not a finite number"),
        ("٣,1", r"is not a finite number"),
    ],
)
def test_other_text_is_refused(split, problem):
    with pytest.raises(ValueError, match=problem) as error:
        parse_and_normalize_split(split)
    assert "'969,30,1'" in str(error.value)


def test_minus_zero_is_zero():
    assert [str(share) for share in parse_and_normalize_split("1,-0")] == ["1.0", "0.0", "0.0"]


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=3).filter(any), st.integers(0, 10**7))
@settings(deadline=None)
def test_splits_cover_a_file_without_gap_or_overlap(shares, elements):
    vector = parse_and_normalize_split(",".join(map(str, shares)))
    ends = [0]
    for bookends in convert_split_vector_to_split_matrix(vector):
        if bookends is not None:
            begin, end = split_range(bookends, elements)
            assert begin == ends[-1]
            assert begin <= end
            ends.append(end)
    assert ends[-1] == elements


def test_ranges_are_rounded_as_python_rounds():
    assert split_range((0, 0.5), 5) == (0, 2)
    assert split_range((0.5, 1.0), 5) == (2, 5)
    assert split_range((0, 0.5), 7) == (0, 4)


def test_a_range_never_leaves_the_file():
    assert split_range((0.5, 1.0000000000000002), 2**53) == (2**52, 2**53)
