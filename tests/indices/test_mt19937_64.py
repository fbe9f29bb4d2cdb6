import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata._kernel import kernel
from coredata.indices import mt19937_64_seed, mt19937_seed, next32, next64, shuffle_rows


class PlainTwister64:
    """The generator again, in plain Python, written for reading."""

    def __init__(self, seed):
        self.words = [seed]
        for i in range(1, 312):
            before = self.words[-1]
            self.words.append((6364136223846793005 * (before ^ before >> 62) + i) % 2**64)
        self.used = 312

    def twist(self):
        for i in range(312):
            joined = self.words[i] >> 31 << 31 | self.words[(i + 1) % 312] & 2**31 - 1
            word = self.words[(i + 156) % 312] ^ joined >> 1
            self.words[i] = word ^ 0xB5026F5AA96619E9 if joined % 2 else word
        self.used = 0

    def next64(self):
        if self.used == 312:
            self.twist()
        word = self.words[self.used]
        self.used += 1
        word ^= word >> 29 & 0x5555555555555555
        word ^= word << 17 & 0x71D67FFFEDA60000
        word ^= word << 37 & 0xFFF7EEE000000000
        return word ^ word >> 43

    def shuffle(self, rows):
        for last in range(len(rows) - 1, 0, -1):
            other = self.next64() % (last + 1)
            rows[last], rows[other] = rows[other], rows[last]


@kernel
def take64(state, out):
    for i in range(out.size):
        out[i] = next64(state)


@kernel
def take32(state, out):
    for i in range(out.size):
        out[i] = next32(state)


def test_the_ten_thousandth_numbers_are_those_of_the_cpp_standard():
    """[rand.predef]: the 10000th call of a generator with the default seed, 5489."""
    words = np.empty(10_000, np.uint64)
    take64(mt19937_64_seed(5489), words)
    assert words[-1] == 9981545732273789042
    take32(mt19937_seed(5489), words)
    assert words[-1] == 4123659995


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=20)
def test_numbers_match_the_plain_generator(seed):
    plain = PlainTwister64(seed)
    # Past the first block of 312 numbers and into the third.
    words = np.empty(700, np.uint64)
    take64(mt19937_64_seed(seed), words)
    assert words.tolist() == [plain.next64() for _ in range(700)]


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 700),
    st.integers(1, 3),
    st.sampled_from([np.uint32, np.uint64]),
)
@settings(max_examples=40)
def test_shuffles_match_plain_swaps(seed, count, width, dtype):
    rows = np.arange(count * width, dtype=dtype).reshape(count, width)
    expected = rows.tolist()
    PlainTwister64(seed).shuffle(expected)
    shuffle_rows(rows, mt19937_64_seed(seed))
    assert rows.tolist() == expected


def test_a_state_goes_on():
    state, plain = mt19937_64_seed(3), PlainTwister64(3)
    for _ in range(3):
        rows = np.arange(400, dtype=np.uint32).reshape(-1, 1)
        expected = rows.tolist()
        plain.shuffle(expected)
        shuffle_rows(rows, state)
        assert rows.tolist() == expected


def test_no_rows():
    shuffle_rows(np.empty((0, 3), np.uint32), mt19937_64_seed(1))


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range(seed):
    with pytest.raises(ValueError, match=rf"seed: {seed} is outside .* Take for example \d+"):
        mt19937_64_seed(seed)


def test_rows_that_cannot_be_shuffled_in_place():
    rows = np.zeros((4, 3), np.uint32)
    with pytest.raises(ValueError, match="strided"):
        shuffle_rows(rows[::2], mt19937_64_seed(1))
    rows.flags.writeable = False
    with pytest.raises(ValueError, match=r"read-only.*numpy.array"):
        shuffle_rows(rows, mt19937_64_seed(1))
