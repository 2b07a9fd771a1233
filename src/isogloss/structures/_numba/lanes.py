"""Sixteen numbers at once: explicit vectors for the innermost loops.

LLVM does not vectorise loops over many small arrays that might overlap, and sentences are short. These intrinsics say
what is meant: a `Lanes` value is one 16-wide vector register of float32 (or several narrower ones, where the machine
has no wider), and arithmetic on it is one instruction. Arrays are flat and padded by the caller; loads need no
alignment. The same code over float64 arrays computes in float64, which is how tests see that float32 is enough.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model

__all__ = [
    "WIDTH", "add", "divide", "largest", "load", "maximum", "multiply", "multiply_add", "prefetch", "splat", "store",
    "subtract", "total",
]  # fmt: skip

WIDTH = 16
_INT = ir.IntType(32)
_VECTORS = {
    types.float32: ir.VectorType(ir.FloatType(), WIDTH),
    types.float64: ir.VectorType(ir.DoubleType(), WIDTH),
}
_BYTES = {types.float32: 4, types.float64: 8}


class _LanesType(types.Type):
    """Sixteen numbers of one type."""

    def __init__(self, number):
        self.number = number
        super().__init__(name=f"Lanes{WIDTH}_{number}")


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _VECTORS[kind.number])


def _lanes_of(number):
    if number not in _VECTORS:
        raise TypingError(f"lanes hold float32 or float64, not {number}")
    return _LanesType(number)


def _mask(indices):
    return ir.Constant(ir.VectorType(_INT, WIDTH), list(indices))


def _address(context, builder, kind, array, index):
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTORS[kind.dtype].as_pointer())


@intrinsic
def load(typing, array, index):
    """The sixteen values of a flat array from `index` on."""

    def code(context, builder, signature, args):
        kind = signature.args[0]
        value = builder.load(_address(context, builder, kind, args[0], args[1]))
        value.align = _BYTES[kind.dtype]
        return value

    return _lanes_of(array.dtype)(array, types.intp), code


@intrinsic
def store(typing, array, index, lanes):
    """Write sixteen values into a flat array from `index` on."""

    def code(context, builder, signature, args):
        kind = signature.args[0]
        builder.store(args[2], _address(context, builder, kind, args[0], args[1])).align = _BYTES[kind.dtype]
        return context.get_dummy_value()

    return types.void(array, types.intp, _lanes_of(array.dtype)), code


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


@intrinsic
def splat(typing, value):
    """The same number in every lane."""
    vector = _VECTORS[_lanes_of(value).number]

    def code(context, builder, signature, args):
        undefined = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(undefined, args[0], ir.Constant(_INT, 0))
        return builder.shuffle_vector(first, undefined, _mask([0] * WIDTH))

    return _lanes_of(value)(value), code


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
    half, undefined = WIDTH // 2, ir.Constant(value.type, ir.Undefined)
    while half:
        other = builder.shuffle_vector(value, undefined, _mask(k + half if k < half else k for k in range(WIDTH)))
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
