"""Bits of 64-bit numbers in kernels."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_INT64, _BIT = ir.IntType(64), ir.IntType(1)


def trailing_zeros(llvm: Any, bits: Any) -> Any:
    """In a function that LLVM is building: how many zeros are below the lowest bit that is set."""
    kind = ir.FunctionType(_INT64, [_INT64, _BIT])
    count = cgutils.get_or_insert_function(llvm.module, kind, "llvm.cttz.i64")
    return llvm.call(count, [bits, _BIT(0)])


@intrinsic
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """`lowest_bit(bits)` in a kernel: the position of the lowest bit that is set; 64 of 0."""

    def generate(context: Any, llvm: Any, signature: Any, arguments: Any) -> Any:
        return trailing_zeros(llvm, arguments[0])

    return types.int64(types.int64), generate
