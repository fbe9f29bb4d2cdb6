import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.indices import mt19937_seed, next32
from coredata.sampling import randperm, torch_randperm

SEEDS = st.integers(0, 2**32 - 1)


def swap_forward(n, seed):
    """PyTorch's permutation of few elements, in plain Python."""
    state, values = mt19937_seed(seed), list(range(n))
    for i in range(n - 1):
        other = i + next32(state) % (n - i)
        values[i], values[other] = values[other], values[i]
    return values


def inside_out(n, seed):
    """PyTorch's permutation of very many elements, in plain Python."""
    state, values = mt19937_seed(seed), []
    for i in range(n):
        place = (next32(state) << 32 | next32(state)) % (i + 1)
        values.append(i)
        values[i], values[place] = values[place], i
    return values


@given(st.integers(0, 1600) | st.sampled_from([512, 513, 1025]), SEEDS)
@settings(deadline=None, max_examples=60)
def test_permutation_matches_the_plain_twin(n, seed):
    permutation = torch_randperm(n, seed)
    assert permutation.dtype == np.int64
    assert permutation.tolist() == swap_forward(n, seed)


def test_the_method_changes_where_pytorchs_does(monkeypatch):
    assert randperm._WIDE == 214_748_364
    monkeypatch.setattr(randperm, "_WIDE", 100)
    for n, twin in ((99, swap_forward), (100, inside_out), (101, inside_out), (700, inside_out)):
        for seed in (0, 5, 2**32 - 1):
            assert torch_randperm(n, seed).tolist() == twin(n, seed)


def test_lower_32_bits_of_the_seed_count():
    assert torch_randperm(50, 2**32 + 7).tolist() == torch_randperm(50, 7).tolist()


def test_negative_length():
    with pytest.raises(ValueError, match=r"n: a permutation of -1 elements was asked for"):
        torch_randperm(-1, 0)
