"""The token dtypes of the format, and their codes in the file."""

from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from coredata.formats.errors import DTypeError

_UINT16_VOCABULARY = 65_500


class DType(Enum):
    """The dtypes a token file may have; the value is the code in the `.idx` header."""

    uint8 = 1
    int8 = 2
    int16 = 3
    int32 = 4
    int64 = 5
    float64 = 6
    float32 = 7
    uint16 = 8

    @classmethod
    def code_from_dtype(cls, dtype: DTypeLike) -> int:
        """The code of a numpy dtype.

        Raises:
            DTypeError: the format has no such dtype.
        """
        name = np.dtype(dtype).name
        if name not in cls.__members__:
            raise DTypeError(
                f"the format cannot store {name}; use one of {', '.join(cls.__members__)}"
            )
        return cls[name].value

    @classmethod
    def dtype_from_code(cls, code: int) -> np.dtype[Any]:
        """The numpy dtype of a code.

        Raises:
            DTypeError: the format has no such code.
        """
        try:
            return np.dtype(cls(code).name)
        except ValueError:
            listed = ", ".join(f"{member.value} {member.name}" for member in cls)
            raise DTypeError(f"there is no dtype code {code}; the codes are {listed}") from None


def best_dtype(vocab_size: int | None) -> np.dtype[Any]:
    """The dtype to write token ids of a vocabulary in: uint16 below 65,500 ids, else int32.

    `vocab_size` is the largest id plus one, or None when it is not known. The margin below
    2^16 is historic; it is kept so that files come out as they always did.

    Raises:
        ValueError: a size below 1, or ids that int32 cannot hold.
    """
    if vocab_size is None:
        return np.dtype(np.int32)
    if not 1 <= vocab_size <= 2**31:
        raise ValueError(f"vocab_size is {vocab_size}; it must be between 1 and 2**31, or None")
    return np.dtype(np.uint16 if vocab_size < _UINT16_VOCABULARY else np.int32)
