import numpy as np
import pytest

from coredata.formats import DType, DTypeError, best_dtype

CODES = {
    1: np.uint8,
    2: np.int8,
    3: np.int16,
    4: np.int32,
    5: np.int64,
    6: np.float64,
    7: np.float32,
    8: np.uint16,
}


@pytest.mark.parametrize(("code", "dtype"), CODES.items())
def test_codes_go_both_ways(code, dtype):
    assert DType.code_from_dtype(dtype) == code
    assert DType.dtype_from_code(code) == dtype


@pytest.mark.parametrize("code", [0, 9, 255])
def test_unknown_codes_list_the_known_ones(code):
    with pytest.raises(DTypeError, match=f"no dtype code {code}; the codes are 1 uint8, .*uint16"):
        DType.dtype_from_code(code)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.bool_, np.float16, "S3"])
def test_unknown_dtypes_list_the_known_ones(dtype):
    with pytest.raises(DTypeError, match=r"cannot store .*; use one of uint8, int8, "):
        DType.code_from_dtype(dtype)


@pytest.mark.parametrize(
    ("vocab_size", "dtype"),
    [
        (1, np.uint16),
        (268, np.uint16),
        (65_499, np.uint16),
        (65_500, np.int32),
        (65_536, np.int32),
        (65_537, np.int32),
        (2**31, np.int32),
        (None, np.int32),
    ],
)
def test_best_dtype(vocab_size, dtype):
    assert best_dtype(vocab_size) == dtype
    if vocab_size is not None:
        assert vocab_size - 1 <= np.iinfo(best_dtype(vocab_size)).max


@pytest.mark.parametrize("vocab_size", [0, -1, 2**31 + 1])
def test_impossible_vocabularies(vocab_size):
    with pytest.raises(ValueError, match=f"vocab_size is {vocab_size}; it must be between 1 and"):
        best_dtype(vocab_size)
