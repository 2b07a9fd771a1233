"""Sixteen numbers at once: explicit vectors for the innermost loops.

LLVM does not vectorise loops over many small arrays that might overlap, and sentences are short. These intrinsics say
what is meant: a `Lanes` value is one 16-wide vector register of float32 (or several narrower ones, where the machine
has no wider), and arithmetic on it is one instruction. Arrays are flat and padded by the caller; loads need no
alignment. The same code over float64 arrays computes in float64, which is how tests see that float32 is enough.

Where rows are short, sixteen is too coarse a measure: `load_eight`, `splat_eight` and `spread_eight` make values of
eight numbers, on which everything else works as well.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model

__all__ = [
    "WIDTH", "add", "divide", "exponential", "largest", "load", "load_eight", "maximum", "multiply", "multiply_add",
    "prefetch", "splat", "splat_eight", "spread_eight", "store", "subtract", "total", "where_positive",
]  # fmt: skip

WIDTH = 16
_INT = ir.IntType(32)
_NUMBERS = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
_BYTES = {types.float32: 4, types.float64: 8}


class _LanesType(types.Type):
    """Sixteen, or eight, numbers of one type."""

    def __init__(self, number, width):
        self.number, self.width = number, width
        super().__init__(name=f"Lanes{width}_{number}")

    @property
    def vector(self):
        return ir.VectorType(_NUMBERS[self.number], self.width)


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, kind.vector)


def _lanes_of(number, width=WIDTH):
    if number not in _NUMBERS:
        raise TypingError(f"lanes hold float32 or float64, not {number}")
    return _LanesType(number, width)


def _mask(indices):
    indices = list(indices)
    return ir.Constant(ir.VectorType(_INT, len(indices)), indices)


def _address(context, builder, kind, array, index, vector):
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _loaded(array, width):
    def code(context, builder, signature, args):
        kind = signature.args[0]
        value = builder.load(_address(context, builder, kind, args[0], args[1], signature.return_type.vector))
        value.align = _BYTES[kind.dtype]
        return value

    return _lanes_of(array.dtype, width)(array, types.intp), code


@intrinsic
def load(typing, array, index):
    """The sixteen values of a flat array from `index` on."""
    return _loaded(array, WIDTH)


@intrinsic
def load_eight(typing, array, index):
    """The eight values of a flat array from `index` on."""
    return _loaded(array, 8)


@intrinsic
def store(typing, array, index, lanes):
    """Write the values into a flat array from `index` on."""

    def code(context, builder, signature, args):
        kind, vector = signature.args[0], signature.args[2].vector
        builder.store(args[2], _address(context, builder, kind, args[0], args[1], vector)).align = _BYTES[kind.dtype]
        return context.get_dummy_value()

    return types.void(array, types.intp, _lanes_of(array.dtype, lanes.width)), code


@intrinsic
def prefetch(typing, array, index):
    """Ask for the memory around flat element `index` of a C-contiguous array, to be there when it is needed."""

    def code(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _INT, _INT, _INT])
        function = builder.module.globals.get("llvm.prefetch.p0") or ir.Function(
            builder.module, kind, "llvm.prefetch.p0"
        )
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        builder.call(function, [place, ir.Constant(_INT, 0), ir.Constant(_INT, 2), ir.Constant(_INT, 1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), code


def _everywhere(builder, lanes, value):
    undefined = ir.Constant(lanes.vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, _mask([0] * lanes.width))


def _splatted(value, width):
    lanes = _lanes_of(value, width)

    def code(context, builder, signature, args):
        return _everywhere(builder, lanes, args[0])

    return lanes(value), code


@intrinsic
def splat(typing, value):
    """The same number in each of sixteen lanes."""
    return _splatted(value, WIDTH)


@intrinsic
def splat_eight(typing, value):
    """The same number in each of eight lanes."""
    return _splatted(value, 8)


@intrinsic
def spread_eight(typing, array, index):
    """Element `index` of a flat array, which is not negative, in each of eight lanes."""
    lanes = _lanes_of(array.dtype, 8)

    def code(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return _everywhere(builder, lanes, builder.load(builder.gep(data, [args[1]])))

    return lanes(array, types.intp), code


@intrinsic
def add(typing, a, b):
    """a + b, lane by lane."""

    def code(context, builder, signature, args):
        return builder.fadd(args[0], args[1], flags=("contract",))

    return a(a, a), code


@intrinsic
def subtract(typing, a, b):
    """a - b, lane by lane."""

    def code(context, builder, signature, args):
        return builder.fsub(args[0], args[1], flags=("contract",))

    return a(a, a), code


@intrinsic
def multiply(typing, a, b):
    """a * b, lane by lane."""

    def code(context, builder, signature, args):
        return builder.fmul(args[0], args[1], flags=("contract",))

    return a(a, a), code


@intrinsic
def divide(typing, a, b):
    """a / b, lane by lane."""

    def code(context, builder, signature, args):
        return builder.fdiv(args[0], args[1])

    return a(a, a), code


def _larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@intrinsic
def maximum(typing, a, b):
    """The larger of a and b, lane by lane."""

    def code(context, builder, signature, args):
        return _larger(builder, args[0], args[1])

    return a(a, a), code


@intrinsic
def multiply_add(typing, a, b, c):
    """a * b + c, lane by lane, fused where the machine can."""

    def code(context, builder, signature, args):
        product = builder.fmul(args[0], args[1], flags=("contract",))
        return builder.fadd(product, args[2], flags=("contract",))

    return a(a, a, a), code


def _folded(builder, value, combine):
    """The lanes combined by halves, always in the same order, into one number."""
    width, undefined = value.type.count, ir.Constant(value.type, ir.Undefined)
    half = width // 2
    while half:
        other = builder.shuffle_vector(value, undefined, _mask(k + half if k < half else k for k in range(width)))
        value, half = combine(value, other), half // 2
    return builder.extract_element(value, ir.Constant(_INT, 0))


@intrinsic
def total(typing, lanes):
    """The sum of the lanes, always in the same order."""

    def code(context, builder, signature, args):
        return _folded(builder, args[0], builder.fadd)

    return lanes.number(lanes), code


@intrinsic
def largest(typing, lanes):
    """The largest of the lanes."""

    def code(context, builder, signature, args):
        return _folded(builder, args[0], lambda a, b: _larger(builder, a, b))

    return lanes.number(lanes), code


@intrinsic
def where_positive(typing, condition, lanes):
    """The lanes whose condition is above 0, and 0 for the others."""

    def code(context, builder, signature, args):
        zero = ir.Constant(args[1].type, None)
        return builder.select(builder.fcmp_ordered(">", args[0], ir.Constant(args[0].type, None)), args[1], zero)

    return lanes(condition, lanes), code


_LOWEST = -708.0  # exp of less is not a normal number
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # their sum is ln 2 to 32 more bits
_ROUNDING = 1.5 * 2.0**52  # x + this - this rounds x to an integer, which the low bits of the sum hold


@intrinsic
def exponential(typing, lanes):
    """exp of float64 lanes that are at most 0: right to 2 units in the last place, and exactly 0 below −708 and at −∞.

    exp x = 2^m exp r with m the integer next to x / ln 2, so that |r| ≤ ln 2 / 2, where 13 terms of the series do.
    """
    if lanes.number is not types.float64:
        raise TypingError("exponential: the lanes should be float64")

    def code(context, builder, signature, args):
        vector, integers = args[0].type, ir.VectorType(ir.IntType(64), args[0].type.count)

        def constant(value, kind=vector):
            return ir.Constant(kind, [value] * vector.count)

        def multiply_add(a, b, c):
            return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))

        x = args[0]
        allowed = builder.fcmp_ordered(">=", x, constant(_LOWEST))
        x = builder.select(allowed, x, constant(_LOWEST))
        shifted = builder.fadd(builder.fmul(x, constant(1 / math.log(2))), constant(_ROUNDING))
        whole = builder.fsub(shifted, constant(_ROUNDING))
        rest = multiply_add(whole, constant(-_LN2_HIGH), x)
        rest = multiply_add(whole, constant(-_LN2_LOW), rest)
        series = constant(1 / math.factorial(13))
        for term in range(12, -1, -1):
            series = multiply_add(series, rest, constant(1 / math.factorial(term)))
        power = builder.shl(
            builder.add(builder.bitcast(shifted, integers), constant(1023, integers)), constant(52, integers)
        )
        scaled = builder.fmul(series, builder.bitcast(power, vector))
        return builder.select(allowed, scaled, ir.Constant(vector, None))

    return lanes(lanes), code
