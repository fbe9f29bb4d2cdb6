"""The tree of bits against a set."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coredata.varlen.bit_tree import empty_tree, insert, least, remove

EDGES = [1, 62, 63, 64, 65, 4094, 4095, 4096, 4097, 262_143, 262_144, 300_000]


@st.composite
def changes(draw):
    largest = draw(st.sampled_from(EDGES) | st.integers(1, 300_000))
    near = [n for edge in (0, *EDGES, largest) for n in (edge - 1, edge, edge + 1)]
    numbers = st.sampled_from([n for n in near if 0 <= n <= largest]) | st.integers(0, largest)
    return largest, draw(st.lists(numbers, max_size=30)), draw(st.lists(numbers, max_size=10))


@settings(deadline=None)
@example((4095, [4095], [0, 63, 64, 4095]))
@example((262_144, [262_144, 0], [1, 262_143, 262_144]))
@given(changes())
def test_matches_a_set(job):
    largest, toggled, asked = job
    exists, starts = empty_tree(np.int64(largest))
    members = set()
    for number in toggled:
        (remove if number in members else insert)(exists, starts, np.int64(number))
        members ^= {number}
        for start in (*asked, number, largest):
            expected = min((member for member in members if member >= start), default=-1)
            assert least(exists, starts, np.int64(start)) == expected
    for number in members:
        remove(exists, starts, np.int64(number))
    assert not exists.any()
