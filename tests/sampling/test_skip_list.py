"""Skip lists, held to a filtered list of numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coredata.sampling import SkipList

numbers = st.sets(st.integers(0, 40), max_size=30)


@given(numbers)
def test_every_question_equals_a_filtered_list(skipped):
    skip = SkipList.of(sorted(skipped, reverse=True))
    kept = np.array([k for k in range(60) if k not in skipped])
    assert skip.kept(np.arange(len(kept))).tolist() == kept.tolist()
    places = np.arange(60)
    assert skip.skipped_below(places).tolist() == [sum(s < p for s in skipped) for p in places]
    assert skip.contains(places).tolist() == [int(p in skipped) for p in places]
    assert (len(skip), skip.end) == (len(skipped), max(skipped, default=-1) + 1)


@given(numbers)
def test_text_and_back(skipped):
    skip = SkipList.of(skipped)
    assert SkipList.parse(str(skip)) == skip
    assert SkipList.parse("\n".join(map(str, skipped))) == skip
    assert hash(SkipList.parse(str(skip))) == hash(skip)


def test_text_as_people_write_it():
    skip = SkipList.parse("# a bad stretch\n 40-55 , 17\n\n18 19-20 # more\n45-60\n")
    assert skip.ranges == ((17, 21), (40, 61))
    assert str(skip) == "17-20,40-60"
    assert SkipList.parse("") == SkipList.parse("# nothing\n") == SkipList.of([]) == SkipList()


@pytest.mark.parametrize("item", ["x", "-3", "5-", "9-8", "1.5", "1-2-3", "²"])
def test_text_that_is_none(item):
    with pytest.raises(ValueError, match=r"skip list, line 2: '.*' is neither a sample number nor"):
        SkipList.parse(f"1, 2\n3, {item}")


def test_numbers_that_are_none():
    with pytest.raises(ValueError, match=r"samples: -1 is negative; samples are numbered from 0"):
        SkipList.of([3, -1])


@pytest.mark.parametrize("ranges", [((3, 3),), ((5, 4),), ((0, 2), (2, 3)), ((5, 6), (1, 2))])
def test_ranges_that_are_none(ranges):
    with pytest.raises(ValueError, match=r"they rise and have kept samples between them"):
        SkipList(ranges)


def test_nothing_is_as_large_as_the_dataset():
    skip = SkipList.parse("5, 1000000000-2000000000")
    assert skip.kept(np.array([999_999_999, 10**12])).tolist() == [2_000_000_001, 1_001_000_000_002]
    assert len(skip) == 1_000_000_002
