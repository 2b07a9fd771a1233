"""How alike two words are spelt, on a GPU: the longest common subsequence in one machine word, as `_numba.spelling`."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["alike"]


@triton.jit
def _ones(x):
    """Number of bits that are set in an int64, whose sign bit is not."""
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 0x7F


@triton.jit
def _alike(
    rows, columns, a_letters, a_starts, a_same, b_letters, b_starts, b_same, shortest, longest, least, out,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The entries of one source type."""
    word = tl.program_id(0)
    first, last = tl.load(rows + word), tl.load(rows + word + 1)
    begin = tl.load(a_starts + word)
    long = (tl.load(a_starts + word + 1) - begin).to(tl.int32)
    same = tl.load(a_same + word)
    fit = (long >= shortest) & (long <= longest)
    for start in range(first, last, BLOCK):
        at = start + tl.arange(0, BLOCK)
        here = at < last
        other = tl.load(columns + at, mask=here, other=0)
        equal = here & (same >= 0) & (tl.load(b_same + other, mask=here, other=-1) == same)
        there = tl.load(b_starts + other, mask=here, other=0)
        size = (tl.load(b_starts + other + 1, mask=here, other=0) - there).to(tl.int32)
        both = (long + size).to(tl.float64)
        shorter = tl.minimum(long, size).to(tl.float64)
        likely = here & fit & (size >= shortest) & (size <= longest) & (2.0 * shorter > least * both)
        v = tl.full((BLOCK,), -1, tl.int64)
        for k in range(tl.max(tl.where(likely, size, 0), 0)):
            letter = tl.load(b_letters + there + k, mask=likely & (k < size), other=-1)
            hits = tl.zeros((BLOCK,), tl.int64)
            for i in range(long):
                hits |= (letter == tl.load(a_letters + begin + i)).to(tl.int64) << i
            u = v & hits
            v = (v + u) | (v - u)
        common = _ones(~v & 0x7FFFFFFFFFFFFFFF) + tl.where(v < 0, 0, 1)
        ratio = 2.0 * common.to(tl.float64) / tl.maximum(both, 1.0)
        ratio = tl.where(likely & (ratio > least), ratio, 0.0).to(tl.float32)
        tl.store(out + at, tl.where(equal, 1.0, ratio), mask=here)


def alike(
    rows: Any, columns: Any, a: tuple[Any, Any, Any], b: tuple[Any, Any, Any], shortest: int, least: float
) -> Any:
    """float32[n_entries]: 1 for words of one form, else their common subsequence ratio where it is above `least`.

    Words are (letters int32, starts int64, number of the whole form int32, -1 where identity says nothing).
    """
    out = torch.zeros(len(columns), dtype=torch.float32, device=columns.device)
    if len(rows) > 1:
        _alike[(len(rows) - 1,)](rows, columns, *a, *b, shortest, 64, float(least), out, BLOCK=128, num_warps=1)
    return out
