"""Every position has one rank, and ranks together are the sequence."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen import context_parallel_partition, inverse_partition


def twin(bounds, ranks):
    out = [[] for _ in range(ranks)]
    for start, end in pairwise(bounds):
        chunks = np.split(np.arange(start, end), 2 * ranks)
        for rank in range(ranks):
            out[rank] += [*chunks[rank], *chunks[2 * ranks - 1 - rank]]
    return out


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), max_size=6), st.integers(2, 5))
def test_matches_the_slow_twin_and_its_inverse_undoes_it(chunks, ranks):
    bounds = np.cumsum([0, *(2 * ranks * c for c in chunks)]).astype(np.int32)
    partition = context_parallel_partition(bounds, ranks)
    assert partition.tolist() == twin(bounds, ranks)
    inverse = inverse_partition(partition)
    assert partition.reshape(-1)[inverse].tolist() == list(range(bounds[-1]))
    values = np.random.RandomState(0).permutation(int(bounds[-1]))
    held = np.concatenate([values[positions] for positions in partition])
    np.testing.assert_array_equal(held[inverse], values)


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(2, 5))
def test_causal_attention_costs_every_rank_the_same(chunks, ranks):
    bounds = np.cumsum([0, *(2 * ranks * c for c in chunks)])
    seen = np.concatenate([np.arange(1, 2 * ranks * c + 1) for c in chunks])
    costs = seen[context_parallel_partition(bounds, ranks)].sum(axis=1)
    assert len(set(costs.tolist())) == 1


def test_one_rank_holds_everything():
    assert context_parallel_partition(np.array([0, 3, 8]), 1).tolist() == [list(range(8))]


def test_a_plain_sequence():
    partition = context_parallel_partition(np.array([0, 8]), 2)
    assert partition.tolist() == [[0, 1, 6, 7], [2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("bounds", "ranks", "message"),
    [
        ([0, 8, 18], 2, r"Segment 1 has 10 tokens, .* multiple of 2 × 2 = 4\. Pad it to 12\."),
        ([1, 9], 2, "cu_seqlens_padded must rise from 0"),
        ([0, 8, 4], 2, "cu_seqlens_padded must rise from 0"),
        ([], 2, "cu_seqlens_padded must rise from 0"),
        ([0, 8], 0, "context_parallel_size must be at least 1, found 0"),
    ],
)
def test_what_cannot_be_shared_is_refused(bounds, ranks, message):
    with pytest.raises(ValueError, match=message):
        context_parallel_partition(np.array(bounds, np.int64), ranks)
