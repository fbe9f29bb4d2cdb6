"""32 lines at a time, in vector registers: the arithmetic of the greedy rule.

Written as operations on vectors of 32 doubles, which LLVM splits into what the processor has.
Products and differences are rounded one after the other, as they are without vectors. Numbers that
are not numbers, and zeros with a sign, do not occur.

Lines are float64 arrays of two rows, weights and samples drawn. A lane without a line has drawn
infinitely many, so that it is never the largest.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from coredata._bits import trailing_zeros

LANES = 32
"""Lines asked at once: four registers of AVX-512, eight of AVX2."""
WEIGHT, DRAWN = range(2)
"""Rows of lines."""

_DOUBLE, _INT32, _INT64, _BIT = ir.DoubleType(), ir.IntType(32), ir.IntType(64), ir.IntType(1)
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_DOUBLE_SIZE = 8
_CACHE_LINE = 64


def no_lines(lines: int) -> np.ndarray:
    """Room for that many lines, up to the next multiple of LANES.

    It begins with a cache line: a vector that crosses two of them is a third slower.
    """
    shape = (2, -(-lines // LANES) * LANES)
    memory = np.zeros(math.prod(shape) * _DOUBLE_SIZE + _CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % _CACHE_LINE
    empty = np.ndarray(shape, np.float64, memory, begin)
    empty[DRAWN] = np.inf
    return empty


class _Builder:
    """Vector operations in the function that LLVM is building."""

    def __init__(self, context: Any, builder: Any, kind: Any, lines: Any) -> None:
        self.llvm = builder
        self._array = context.make_array(kind)(context, builder, lines)

    def place(self, row: int, first: Any) -> Any:
        length = self.llvm.extract_value(self._array.shape, 1)
        index = self.llvm.add(self.llvm.mul(_INT64(row), length), first)
        return self.llvm.bitcast(self.llvm.gep(self._array.data, [index]), _VECTOR.as_pointer())

    def load(self, row: int, first: Any) -> Any:
        return self.llvm.load(self.place(row, first), align=_DOUBLE_SIZE)

    def spread(self, value: Any) -> Any:
        """One number in all lanes."""
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        one = self.llvm.insert_element(undefined, value, _INT32(0))
        lanes = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
        return self.llvm.shuffle_vector(one, undefined, lanes)

    def error(self, step: Any, first: Any) -> Any:
        weight, drawn = self.load(WEIGHT, first), self.load(DRAWN, first)
        return self.llvm.fsub(self.llvm.fmul(weight, self.spread(step)), drawn)

    def most(self, vector: Any) -> Any:
        kind = ir.FunctionType(_DOUBLE, [_VECTOR])
        name = f"llvm.vector.reduce.fmax.v{LANES}f64"
        function = cgutils.get_or_insert_function(self.llvm.module, kind, name)
        return self.llvm.call(function, [vector], fastmath=("nnan", "nsz"))

    def bits(self, lanes: Any) -> Any:
        return self.llvm.zext(self.llvm.bitcast(lanes, ir.IntType(LANES)), _INT64)

    def lanes(self, bits: Any) -> Any:
        narrow = self.llvm.trunc(bits, ir.IntType(LANES))
        return self.llvm.bitcast(narrow, ir.VectorType(_BIT, LANES))


@intrinsic
def draw_some(
    typing_context: Any,
    lines: Any,
    winners: Any,
    steps: Any,
    care: Any,
    ties: Any,
    low: Any,
    slope: Any,
) -> Any:
    """`draw_some(lines, winners, (t, end), care, ties, low, slope)` in a kernel.

    From 32 lines, for T = t up to `end`, the one with the largest error is drawn, the first on a
    tie, and its lane written to `winners`. Stops before a step at which one has the largest error
    whose bit is set in `care`, or at which none is above the chord `low + slope × (T − t)`; with
    `ties` 1, also where several have it. Returns how many were drawn.

    What lines have drawn stays in registers all the while: from memory, a step would have to wait
    for what the step before has written.
    """

    def generate(context: Any, llvm: Any, signature: Any, arguments: Any) -> Any:
        build = _Builder(context, llvm, signature.args[0], arguments[0])
        kept = context.make_array(signature.args[1])(context, llvm, arguments[1]).data
        begin, end = cgutils.unpack_tuple(llvm, arguments[2])
        _, _, _, care, ties, low, slope = arguments
        weight, drawn = build.load(WEIGHT, _INT64(0)), build.load(DRAWN, _INT64(0))
        before = llvm.block
        names = ("ask", "draw", "alone", "tied", "stop")
        ask, draw, alone, tied, stop = [llvm.append_basic_block(name) for name in names]
        llvm.branch(ask)

        llvm.position_at_end(ask)
        done, now = llvm.phi(_INT64), llvm.phi(_VECTOR)
        done.add_incoming(_INT64(0), before)
        now.add_incoming(drawn, before)
        step = llvm.sitofp(llvm.add(begin, done), _DOUBLE)
        error = llvm.fsub(llvm.fmul(weight, build.spread(step)), now)
        most = build.most(error)
        found = llvm.fcmp_ordered("==", error, build.spread(most))
        bits = build.bits(found)
        bound = llvm.fadd(low, llvm.fmul(slope, llvm.sitofp(done, _DOUBLE)))
        others = llvm.and_(bits, llvm.sub(bits, _INT64(1)))
        halts = llvm.or_(llvm.and_(bits, care), llvm.and_(others, llvm.neg(ties)))
        goes = llvm.and_(
            llvm.fcmp_ordered(">", most, bound), llvm.icmp_signed("==", halts, _INT64(0))
        )
        more = llvm.icmp_signed("<", llvm.add(begin, done), end)
        llvm.cbranch(llvm.and_(goes, more), draw, stop)

        llvm.position_at_end(draw)
        llvm.store(trailing_zeros(llvm, bits), llvm.gep(kept, [done]))
        one, none = (ir.Constant(_VECTOR, [x] * LANES) for x in (1.0, 0.0))
        following = llvm.add(done, _INT64(1))
        first = build.lanes(llvm.xor(bits, others))
        # Two ways, so that the rule for ties costs no time where there are none.
        llvm.cbranch(llvm.icmp_signed("==", others, _INT64(0)), alone, tied)
        for block, winner in ((alone, found), (tied, first)):
            llvm.position_at_end(block)
            now.add_incoming(llvm.fadd(now, llvm.select(winner, one, none)), block)
            done.add_incoming(following, block)
            llvm.branch(ask)

        llvm.position_at_end(stop)
        llvm.store(now, build.place(DRAWN, _INT64(0)), align=_DOUBLE_SIZE)
        return done

    both = types.UniTuple(types.int64, 2)
    number, double = types.int64, types.float64
    return number(lines, winners, both, number, number, double, double), generate


@intrinsic
def find_largest(typing_context: Any, lines: Any, first: Any, step: Any) -> Any:
    """`find_largest(lines, first, step)` in a kernel: the largest error of 32 lines, and whose."""

    def generate(context: Any, llvm: Any, signature: Any, arguments: Any) -> Any:
        build = _Builder(context, llvm, signature.args[0], arguments[0])
        error = build.error(arguments[2], arguments[1])
        most = build.most(error)
        found = llvm.fcmp_ordered("==", error, build.spread(most))
        return context.make_tuple(llvm, signature.return_type, [most, build.bits(found)])

    return types.Tuple((types.float64, types.int64))(lines, types.int64, step), generate


@intrinsic
def find_above(typing_context: Any, lines: Any, first: Any, cut: Any, early: Any, late: Any) -> Any:
    """`find_above(lines, first, cut, early, late)` in a kernel: sort 32 lines by their errors.

    Returns as bits which have an error of at least `cut` at T = `late`, how many these are, and
    the largest error of the others at T = `early` and at T = `late`.
    """

    def generate(context: Any, llvm: Any, signature: Any, arguments: Any) -> Any:
        build = _Builder(context, llvm, signature.args[0], arguments[0])
        _, first, cut, early, late = arguments
        error = build.error(late, first)
        above = llvm.fcmp_ordered(">=", error, build.spread(cut))
        low = ir.Constant(_VECTOR, [-np.inf] * LANES)
        others = [llvm.select(above, low, e) for e in (build.error(early, first), error)]
        bits = build.bits(above)
        kind = ir.FunctionType(_INT64, [_INT64])
        count = cgutils.get_or_insert_function(llvm.module, kind, "llvm.ctpop.i64")
        values = [bits, llvm.call(count, [bits]), *(build.most(other) for other in others)]
        return context.make_tuple(llvm, signature.return_type, values)

    result = types.Tuple((types.int64, types.int64, types.float64, types.float64))
    return result(lines, types.int64, cut, early, late), generate
