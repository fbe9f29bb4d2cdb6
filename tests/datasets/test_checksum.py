"""The checksum against a slow twin, and what it finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coredata.datasets.checksum import checksum

MASK = 2**64 - 1
PRIME = 0x9E3779B185EBCA87


def mix(state, word):
    state = (state ^ word) * PRIME & MASK
    return (state << 29 | state >> 35) & MASK


def slow_checksum(data: bytes) -> str:
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data) // 8 * 8, 8)]
    lanes = list(range(1, 9))
    full = len(words) // 8 * 8
    for i, word in enumerate(words[:full]):
        lanes[i % 8] = mix(lanes[i % 8], word)
    tail = int.from_bytes(data[len(words) * 8 :], "little")
    value = len(data)
    for word in [*words[full:], tail, *lanes]:
        value = mix(value, word)
    return f"{value ^ value >> 32:016x}"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_equals_slow_twin(data):
    assert checksum(np.frombuffer(data, np.uint8)) == slow_checksum(data)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.int16])
def test_any_dtype_and_shape(dtype):
    array = np.arange(30, dtype=dtype).reshape(15, 2)
    assert checksum(array) == slow_checksum(array.tobytes())


@settings(max_examples=100, deadline=None)
@given(data=st.binary(min_size=1, max_size=200), bit=st.integers(0, 1599))
def test_finds_a_flipped_bit(data, bit):
    damaged = bytearray(data)
    damaged[bit // 8 % len(data)] ^= 1 << bit % 8
    assert checksum(np.frombuffer(data, np.uint8)) != checksum(np.frombuffer(damaged, np.uint8))


def test_finds_swapped_pages():
    pages = np.random.default_rng(0).integers(0, 256, (4, 4096), dtype=np.uint8)
    assert checksum(pages) != checksum(pages[[0, 2, 1, 3]])


def test_finds_missing_zeros():
    assert checksum(np.zeros(100, np.uint8)) != checksum(np.zeros(101, np.uint8))
