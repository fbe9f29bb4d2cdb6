import numba
import pytest

from coredata._bits import lowest_bit


@numba.njit
def lowest(bits):
    return lowest_bit(bits)


@pytest.mark.parametrize("bit", [0, 1, 31, 62])
def test_lowest_bit(bit):
    assert lowest((1 << bit) | (1 << 62)) == bit
    assert lowest(-(1 << 63)) == 63
    assert lowest(0) == 64
