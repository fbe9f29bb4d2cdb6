"""Every draw is the one that numpy's RandomState makes, and leaves the generator where it does."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coredata._kernel import kernel
from coredata.indices import mt19937_seed
from coredata.masking import MaskingSettings, size_cutoffs
from coredata.masking.draws import draw_below, draw_share, draw_size, shuffle_first

SEEDS = st.integers(0, 2**32 - 1)


@kernel
def shares(state, out):
    for i in range(out.size):
        out[i] = draw_share(state)


@kernel
def sizes(state, cutoffs, out):
    for i in range(out.size):
        out[i] = draw_size(state, cutoffs)


@kernel
def below(state, bounds, out):
    for i in range(out.size):
        out[i] = draw_below(state, bounds[i])


@kernel
def shuffle(state, array, count):
    shuffle_first(array, count, state)


def settings_of(max_ngram, longer=False, geometric=False):
    return MaskingSettings(
        probability=0.15,
        max_ngram=max_ngram,
        full_words=False,
        permute=False,
        longer_ngrams=longer,
        geometric=geometric,
    )


def assert_at_the_same_place(state, random):
    out = np.empty(1)
    shares(state, out)
    assert out[0] == random.random_sample()


@given(SEEDS)
@settings(max_examples=30)
def test_random(seed):
    state, out = mt19937_seed(seed), np.empty(1000)
    shares(state, out)
    random = np.random.RandomState(seed)
    np.testing.assert_array_equal(out, random.random_sample(1000))
    assert_at_the_same_place(state, random)


@given(SEEDS, st.lists(st.integers(1, 2**32), min_size=1, max_size=50))
@example(1, [1, 2, 3, 2**31, 2**31 + 1, 2**32 - 1, 2**32])
def test_randint(seed, bounds):
    state, out = mt19937_seed(seed), np.empty(len(bounds), np.int64)
    below(state, np.array(bounds), out)
    random = np.random.RandomState(seed)
    assert out.tolist() == [random.randint(0, bound) for bound in bounds]
    assert_at_the_same_place(state, random)


@given(SEEDS, st.integers(0, 600), st.integers(0, 5))
@settings(max_examples=60)
def test_shuffle_of_a_list(seed, count, beyond):
    state, array = mt19937_seed(seed), np.arange(count + beyond)
    shuffle(state, array, count)
    random, expected = np.random.RandomState(seed), [[i] for i in range(count)]
    random.shuffle(expected)
    assert array[:count].tolist() == [i for (i,) in expected]
    assert array[count:].tolist() == list(range(count, count + beyond))
    assert_at_the_same_place(state, random)


@given(SEEDS, st.integers(1, 40), st.booleans())
@settings(max_examples=60)
def test_choice_of_sizes(seed, most, longer):
    state, out = mt19937_seed(seed), np.empty(200, np.int64)
    sizes(state, size_cutoffs(settings_of(most, longer)), out)
    values = np.arange(most, dtype=np.int64) + 1
    chances = 1.0 / values
    chances = chances / chances.sum(keepdims=True)
    if longer:
        chances = chances[::-1]
    random = np.random.RandomState(seed)
    expected = [
        random.choice(values, p=chances[:most] / chances[:most].sum(keepdims=True))
        for _ in range(200)
    ]
    assert out.tolist() == expected
    assert_at_the_same_place(state, random)


@given(SEEDS, st.integers(1, 40))
@settings(max_examples=60)
def test_geometric_sizes(seed, most):
    state, out = mt19937_seed(seed), np.empty(500, np.int64)
    sizes(state, size_cutoffs(settings_of(most, geometric=True)), out)
    random = np.random.RandomState(seed)
    assert out.tolist() == [min(random.geometric(0.2), most) for _ in range(500)]
    assert_at_the_same_place(state, random)


def state_that_gives(share):
    """A RandomState whose next `random()` is `share`: its first two words, tempered back."""
    number = int(share * 2**53)
    words = [(number >> 26) << 5, (number & (2**26 - 1)) << 6]
    key = np.zeros(624, np.uint32)
    for i, word in enumerate(words):
        word ^= word >> 18
        word ^= word << 15 & 0xEFC60000
        value = word
        for _ in range(4):
            value = word ^ (value << 7 & 0x9D2C5680)
        word = value & 0xFFFFFFFF
        value = word ^ word >> 11
        key[i] = word ^ value >> 11
    random = np.random.RandomState(0)
    random.set_state(("MT19937", key, 0))
    return random


@given(st.integers(0, 2**53 - 1))
def test_a_state_that_gives_a_share(number):
    assert state_that_gives(number / 2**53).random_sample() == number / 2**53


def test_geometric_cutoffs_are_exact():
    """At a cutoff numpy draws the next size; at the share below it does not."""
    cutoffs = size_cutoffs(settings_of(60, geometric=True))
    assert len(cutoffs) == 59
    for size, cutoff in enumerate(cutoffs.tolist(), start=1):
        assert state_that_gives(cutoff).geometric(0.2) == size + 1
        assert state_that_gives(cutoff - 2.0**-53).geometric(0.2) == size


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"probability": 0.0}, r"masking_probability: got 0.0, need a share above 0 and below 1"),
        ({"probability": 1.0}, r"masking_probability: got 1.0"),
        ({"max_ngram": 0}, r"masking_max_ngram: got 0, need at least 1, such as 3"),
        ({"geometric": True, "permute": True}, r"masking_do_permutation: .* turn one of them off"),
    ],
)
def test_settings_out_of_range(changes, text):
    values = {"probability": 0.15, "max_ngram": 3, "full_words": True, "permute": False}
    with pytest.raises(ValueError, match=text):
        MaskingSettings(**{**values, "longer_ngrams": False, "geometric": False, **changes})
