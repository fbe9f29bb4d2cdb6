"""The schedule over data-parallel ranks: a twin, promises, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.varlen import dp_balanced, rank_groups


def twin(lengths, limit, multiple):
    packs = []
    for i, length in enumerate(lengths):
        if not packs or sum(lengths[j] for j in packs[-1]) + length > limit:
            packs.append([])
        packs[-1].append(i)
    at = len(packs) - 1
    while len(packs) % multiple:
        if at < 0:
            return None
        if len(packs[at]) > 1:
            packs.append([packs[at].pop()])
        else:
            at -= 1
    return packs


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 20), max_size=40),
    st.integers(10, 20),
    st.integers(1, 5),
    st.integers(1, 3),
    st.none() | st.integers(1, 3),
)
def test_matches_the_slow_twin(lengths, per_rank, dp, cp, group):
    lengths = [min(n, per_rank * cp) for n in lengths]
    expected = twin(lengths, per_rank * cp, dp * (group or 1))
    array = np.array(lengths, np.int32)
    if expected is None:
        with pytest.raises(ValueError, match="samples are not enough"):
            dp_balanced(array, per_rank, dp, cp, group)
        return
    plan = dp_balanced(array, per_rank, dp, cp, group)
    assert [plan[row].samples.tolist() for row in range(len(plan))] == expected
    groups = rank_groups(plan, dp, cp)
    assert all(len(microbatch) == dp * cp for microbatch in groups)
    assert [m[r * cp + c] for m in groups for r in range(dp) for c in [cp - 1]] == expected


def test_sample_numbers_are_the_callers():
    plan = dp_balanced(np.array([6, 6]), 10, 2, samples=np.array([40, 17]))
    assert rank_groups(plan, 2) == [[[40], [17]]]


def test_no_samples_are_no_microbatches():
    assert rank_groups(dp_balanced(np.empty(0, np.int64), 10, 4), 4) == []


def test_a_sample_over_the_limit_is_refused():
    message = (
        r"Sample 31 has a padded length of 25; a pack holds 1 to 20 tokens "
        r"\(max_seqlen_per_dp_cp_rank=10 × context_parallel_size=2\)\. Cut it, or use "
        r"max_seqlen_per_dp_cp_rank=13 or more"
    )
    with pytest.raises(ValueError, match=message):
        dp_balanced(np.array([5, 25]), 10, 1, 2, samples=np.array([30, 31]))


def test_a_sample_without_tokens_is_refused():
    with pytest.raises(ValueError, match="Sample 1 has a padded length of 0; a pack holds 1 to 10"):
        dp_balanced(np.array([5, 0]), 10, 1)


def test_too_few_samples_say_how_many_and_for_what():
    message = r"3 samples are not enough: every one of 8 packs .* 3 are filled\) needs one\. Use"
    with pytest.raises(ValueError, match=message):
        dp_balanced(np.array([9, 9, 9]), 10, 4, 1, 2)


@pytest.mark.parametrize(
    "name",
    [
        "max_seqlen_per_dp_cp_rank",
        "data_parallel_size",
        "context_parallel_size",
        "microbatch_group_size_per_vp_stage",
    ],
)
def test_sizes_start_at_one(name):
    sizes = {"max_seqlen_per_dp_cp_rank": 10, "data_parallel_size": 1, name: 0}
    with pytest.raises(ValueError, match=f"{name} must be at least 1, found 0"):
        dp_balanced(np.array([5]), **sizes)
