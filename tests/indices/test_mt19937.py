import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coredata.indices import mt19937_seed, next32, shuffle_in_place
from coredata.indices.mt19937 import _shuffle_wide, bounded

SEEDS = st.integers(0, 2**32 - 1)


class PlainTwister:
    """The generator again, in plain Python, written for reading."""

    def __init__(self, seed):
        self.words = [seed]
        for i in range(1, 624):
            before = self.words[-1]
            self.words.append((1812433253 * (before ^ before >> 30) + i) % 2**32)
        self.used = 624

    def twist(self):
        for i in range(624):
            joined = self.words[i] & 2**31 | self.words[(i + 1) % 624] & 2**31 - 1
            word = self.words[(i + 397) % 624] ^ joined >> 1
            self.words[i] = word ^ 0x9908B0DF if joined % 2 else word
        self.used = 0

    def next32(self):
        if self.used == 624:
            self.twist()
        word = self.words[self.used]
        self.used += 1
        word ^= word >> 11
        word ^= word << 7 & 0x9D2C5680
        word ^= word << 15 & 0xEFC60000
        return word ^ word >> 18

    def bounded(self, largest):
        mask = 2 ** largest.bit_length() - 1
        while True:
            if largest < 2**32:
                value = self.next32() & mask
            else:
                value = (self.next32() << 32 | self.next32()) & mask
            if value <= largest:
                return value

    def shuffle(self, values):
        for last in range(len(values) - 1, 0, -1):
            other = self.bounded(last)
            values[last], values[other] = values[other], values[last]


@given(SEEDS)
@settings(deadline=None, max_examples=20)
def test_words_match_the_plain_generator(seed):
    state, plain = mt19937_seed(seed), PlainTwister(seed)
    np.testing.assert_array_equal(state[:624], plain.words)
    # Past the first block of 624 words and into the third.
    assert [next32(state) for _ in range(1300)] == [plain.next32() for _ in range(1300)]


@pytest.mark.parametrize("seed", [0, 1, 1234, 2**31, 2**32 - 1])
def test_words_match_numpy(seed):
    state, numpy_state = mt19937_seed(seed), np.random.RandomState(seed)
    words = [next32(state) for _ in range(2000)]
    assert words == numpy_state.randint(0, 2**32, 2000, dtype=np.uint32).tolist()


@given(SEEDS, st.integers(1, 2**62))
@example(1, 2**32 - 1)
@example(1, 2**32)
@example(1, 2**33 - 1)
@settings(deadline=None, max_examples=50)
def test_bounded_numbers_match_numpy_and_the_plain_twin(seed, largest):
    state, numpy_state, plain = mt19937_seed(seed), np.random.RandomState(seed), PlainTwister(seed)
    mask = 2 ** largest.bit_length() - 1
    ours = [bounded(state, np.int64(largest), np.int64(mask)) for _ in range(20)]
    assert ours == [plain.bounded(largest) for _ in range(20)]
    dtype = np.int64 if largest > 2**32 - 1 else np.uint32
    assert ours == numpy_state.randint(0, largest + 1, 20, dtype=dtype).tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
@given(SEEDS, st.integers(0, 300))
@settings(deadline=None, max_examples=40)
def test_shuffle_matches_numpy_and_the_plain_twin(dtype, seed, size):
    state, numpy_state, plain = mt19937_seed(seed), np.random.RandomState(seed), PlainTwister(seed)
    ours = np.arange(size, dtype=dtype) - dtype(size // 2)
    theirs, values = ours.copy(), ours.tolist()
    # Twice: the second shuffle goes on where the first one left the generator.
    for _ in range(2):
        shuffle_in_place(ours, state)
        numpy_state.shuffle(theirs)
        plain.shuffle(values)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.tolist() == values


@pytest.mark.parametrize("size", [2**16 - 1, 2**16, 2**16 + 1, 200_003])
def test_long_shuffles_match_numpy(size):
    ours = np.arange(size, dtype=np.uint32)
    theirs = ours.copy()
    shuffle_in_place(ours, mt19937_seed(99))
    np.random.RandomState(99).shuffle(theirs)
    np.testing.assert_array_equal(ours, theirs)


@given(SEEDS, st.integers(1, 3000), st.integers(1, 3000))
@settings(deadline=None, max_examples=50)
def test_a_shuffle_in_two_parts(seed, size, shortest):
    # Arrays of more than 2^32 elements are shuffled like this.
    ours = np.arange(size, dtype=np.int64)
    theirs = ours.copy()
    state = mt19937_seed(seed)
    _shuffle_wide(ours, state, shortest)
    shuffle_in_place(ours[:shortest], state)
    np.random.RandomState(seed).shuffle(theirs)
    np.testing.assert_array_equal(ours, theirs)


def test_part_of_an_array_and_a_strided_one():
    for part in (np.s_[5:], np.s_[:50], np.s_[::3], np.s_[::-1]):
        ours, theirs = np.arange(100), np.arange(100)
        shuffle_in_place(ours[part], mt19937_seed(3))
        np.random.RandomState(3).shuffle(theirs[part])
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seed_out_of_range(seed):
    with pytest.raises(ValueError, match=rf"random_seed: {seed} is outside 0 … 4294967295"):
        mt19937_seed(seed)


def test_what_cannot_be_shuffled():
    state = mt19937_seed(0)
    with pytest.raises(TypeError, match=r"the array is int16; .*array.astype\('int64'\)"):
        shuffle_in_place(np.zeros(3, np.int16), state)
    frozen = np.arange(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match=r"the array is read-only"):
        shuffle_in_place(frozen, state)
