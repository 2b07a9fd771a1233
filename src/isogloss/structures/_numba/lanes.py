"""Sixteen float32 at once: explicit vectors for the innermost loops.

LLVM does not vectorise loops over many small arrays that might overlap, and sentences are short. These intrinsics say
what is meant: a `Lanes` value is one 16-wide vector register (or two 8-wide ones, or four 4-wide, where the machine has
no wider), and arithmetic on it is one instruction. Arrays are flat and padded by the caller; loads need no alignment.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

__all__ = ["WIDTH", "add", "divide", "load", "multiply", "multiply_add", "splat", "store", "subtract", "total"]

WIDTH = 16
_VECTOR = ir.VectorType(ir.FloatType(), WIDTH)
_INT = ir.IntType(32)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)


class _LanesType(types.Type):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(name="Lanes16")


_lanes = _LanesType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _VECTOR)


def _mask(indices):
    return ir.Constant(ir.VectorType(_INT, WIDTH), list(indices))


def _address(context, builder, kind, array, index):
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@intrinsic
def load(typing, array, index):
    """The sixteen values of a flat float32 array from `index` on."""

    def code(context, builder, signature, args):
        value = builder.load(_address(context, builder, signature.args[0], args[0], args[1]))
        value.align = 4
        return value

    return _lanes(array, types.intp), code


@intrinsic
def store(typing, array, index, lanes):
    """Write sixteen values into a flat float32 array from `index` on."""

    def code(context, builder, signature, args):
        builder.store(args[2], _address(context, builder, signature.args[0], args[0], args[1])).align = 4
        return context.get_dummy_value()

    return types.void(array, types.intp, _lanes), code


@intrinsic
def splat(typing, value):
    """The same float32 in every lane."""

    def code(context, builder, signature, args):
        first = builder.insert_element(_UNDEFINED, args[0], ir.Constant(_INT, 0))
        return builder.shuffle_vector(first, _UNDEFINED, _mask([0] * WIDTH))

    return _lanes(types.float32), code


@intrinsic
def add(typing, a, b):
    """a + b, lane by lane."""

    def code(context, builder, signature, args):
        return builder.fadd(args[0], args[1], flags=("contract",))

    return _lanes(_lanes, _lanes), code


@intrinsic
def subtract(typing, a, b):
    """a - b, lane by lane."""

    def code(context, builder, signature, args):
        return builder.fsub(args[0], args[1], flags=("contract",))

    return _lanes(_lanes, _lanes), code


@intrinsic
def multiply(typing, a, b):
    """a * b, lane by lane."""

    def code(context, builder, signature, args):
        return builder.fmul(args[0], args[1], flags=("contract",))

    return _lanes(_lanes, _lanes), code


@intrinsic
def divide(typing, a, b):
    """a / b, lane by lane."""

    def code(context, builder, signature, args):
        return builder.fdiv(args[0], args[1])

    return _lanes(_lanes, _lanes), code


@intrinsic
def multiply_add(typing, a, b, c):
    """a * b + c, lane by lane, fused where the machine can."""

    def code(context, builder, signature, args):
        product = builder.fmul(args[0], args[1], flags=("contract",))
        return builder.fadd(product, args[2], flags=("contract",))

    return _lanes(_lanes, _lanes, _lanes), code


@intrinsic
def total(typing, lanes):
    """The sum of the lanes, always in the same order."""

    def code(context, builder, signature, args):
        value, half = args[0], WIDTH // 2
        while half:
            folded = builder.shuffle_vector(value, _UNDEFINED, _mask(k + half if k < half else k for k in range(WIDTH)))
            value, half = builder.fadd(value, folded), half // 2
        return builder.extract_element(value, ir.Constant(_INT, 0))

    return types.float32(_lanes), code
