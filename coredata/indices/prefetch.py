"""Asking for memory before it is needed."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_READ = 0
_SECOND_LEVEL = 1
"""Into the second-level cache. On the machines measured a hint for the first level was half as
fast: it waits for one of the few line buffers of that cache."""
_DATA = 1


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """`prefetch(array, index)` in a kernel: bring the cache line of `array[index]` closer.

    A hint, which changes no value and cannot fail, whatever the index. Random reads of large
    arrays are bound by latency; hints for the next few hundred let them overlap.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        of_llvm = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, of_llvm, "llvm.prefetch.p0i8")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        options = [number(_READ), number(_SECOND_LEVEL), number(_DATA)]
        builder.call(function, [address, *options])
        return context.get_dummy_value()

    return types.void(array, index), generate
