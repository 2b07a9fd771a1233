"""Projective trees of first order on a GPU: Eisner's spans in plain float64, one program a sentence.

The program of `_numba.eisner_scaled`: weights of each word divided by its largest, sums in plain numbers, and the same
tests of whether the numbers fit; where they may not, log Z is NaN and the caller turns to logarithms. Charts lie by
diagonals: ``right[w, i]`` is the span from i to i + w whose head is i, ``left[w, i]`` the one whose head is i + w,
so that all spans of one width are neighbours, and a width is three products of tiles [split, span]:

    inner(w, i) = Σ_t right[t, i] left[w-1-t, i+t+1]
    right[w, i] = Σ_t open_right[t, i] right[w-t, i+t],  t = 1 … w
    left[w, i]  = Σ_t left[t, i] open_left[w-t, i+t],    t = 0 … w-1
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["MOST_NODES", "marginal_trees"]

MOST_NODES = 64  # of longer sentences log Z is NaN: the caller does them on the processor
_GROWTH = math.log(27 / 4)
_REACH, _HIGHEST, _DEEPEST = 690.0, 1e290, -600.0  # as in `_numba.eisner_scaled`
_CHARTS = 10
_PROGRAMS = 4096


@triton.jit
def _product(a, b, down, shift, here, N: tl.constexpr):
    """Tiles a[t, i] and b[down - t, i + t + shift] where `here`."""
    t = tl.arange(0, N)[:, None]
    i = tl.arange(0, N)[None, :]
    x = tl.load(a + t * N + i, mask=here, other=0.0)
    y = tl.load(b + (down - t) * N + i + t + shift, mask=here, other=0.0)
    return x, y


@triton.jit
def _add(d_a, d_b, x, y, factor, down, shift, here, N: tl.constexpr):
    """The derivative of factor · Σ a b, see `_product`: no two cells of a tile are the same number."""
    t = tl.arange(0, N)[:, None]
    i = tl.arange(0, N)[None, :]
    old = tl.load(d_a + t * N + i, mask=here, other=0.0)
    tl.store(d_a + t * N + i, old + factor[None, :] * y, mask=here)
    tl.debug_barrier()
    at = (down - t) * N + i + t + shift
    old = tl.load(d_b + at, mask=here, other=0.0)
    tl.store(d_b + at, old + factor[None, :] * x, mask=here)
    tl.debug_barrier()


@triton.jit
def _trees(
    chosen, n_chosen, programs, scores, offsets, sizes, grad, found, scratch, N: tl.constexpr, SINGLE: tl.constexpr
):
    """Every `programs`-th chosen sentence; found[s] = z, shift, least weight (its logarithm), largest adjoint."""
    number = tl.program_id(0)
    area: tl.constexpr = N * N
    weight_right = scratch + number.to(tl.int64) * 10 * area
    weight_left = weight_right + area
    right, left = weight_right + 2 * area, weight_right + 3 * area
    open_right, open_left = weight_right + 4 * area, weight_right + 5 * area
    d_right, d_left = weight_right + 6 * area, weight_right + 7 * area
    d_open_right, d_open_left = weight_right + 8 * area, weight_right + 9 * area
    lane = tl.arange(0, N)
    t = lane[:, None]
    i = lane[None, :]
    first: tl.constexpr = 1 if SINGLE else 0
    for at in range(number, n_chosen, programs):
        s = tl.load(chosen + at)
        size = tl.load(sizes + s).to(tl.int32)
        here = scores + tl.load(offsets + s)
        out = grad + tl.load(offsets + s)
        last = size - 1
        matrix = tl.load(
            here + t * size + i, mask=(t < size) & (i < size) & (i > 0) & (t != i), other=-float("inf")
        )  # by head, child
        top = tl.max(matrix, 0)
        shift = tl.sum(tl.where((lane > 0) & (lane < size), top, 0.0), 0)
        relative = tl.where(matrix == -float("inf"), -float("inf"), matrix - top[None, :])
        least = tl.min(tl.min(tl.where(relative == -float("inf"), 0.0, relative), 1), 0)
        weight = tl.exp(relative)
        tl.store(weight_right + (i - t) * N + t, weight, mask=(i > t) & (i < size))
        tl.store(weight_left + (t - i) * N + i, weight, mask=(t > i) & (t < size))
        zero = tl.zeros((N, N), tl.float64)
        for chart in range(8):
            tl.store(right + chart * area + t * N + i, zero)
        tl.debug_barrier()
        one = tl.where((lane >= first) & (lane < size), 1.0, 0.0).to(tl.float64)
        tl.store(right + lane, one)
        tl.store(left + lane, one)
        tl.debug_barrier()
        for width in range(1, size - first):
            span = (lane >= first) & (lane + width < size)
            mask = (t < width) & span[None, :]
            x, y = _product(right, left, width - 1, 1, mask, N)
            inner = tl.sum(x * y, 0)
            tl.store(
                open_right + width * N + lane,
                inner * tl.load(weight_right + width * N + lane, mask=span, other=0.0), mask=span,
            )  # fmt: skip
            tl.store(
                open_left + width * N + lane,
                inner * tl.load(weight_left + width * N + lane, mask=span, other=0.0), mask=span,
            )  # fmt: skip
            tl.debug_barrier()
            x, y = _product(open_right, right, width, 0, (t > 0) & (t <= width) & span[None, :], N)
            tl.store(right + width * N + lane, tl.sum(x * y, 0), mask=span)
            x, y = _product(left, open_left, width, 0, mask, N)
            tl.store(left + width * N + lane, tl.sum(x * y, 0), mask=span)
            tl.debug_barrier()
        if SINGLE:
            root = (lane > 0) & (lane < size)
            w = tl.load(weight_right + lane * N, mask=root, other=0.0)
            below = tl.load(left + (lane - 1) * N + 1, mask=root, other=0.0)
            above = tl.load(right + (last - lane) * N + lane, mask=root, other=0.0)
            z = tl.sum(w * below * above, 0)
            tl.store(out + lane, tl.minimum(1.0, w / z * below * above), mask=root)
            tl.store(d_left + (lane - 1) * N + 1, w / z * above, mask=root)
            tl.debug_barrier()
            old = tl.load(d_right + (last - lane) * N + lane, mask=root, other=0.0)
            tl.store(d_right + (last - lane) * N + lane, old + w / z * below, mask=root)
        else:
            z = tl.load(right + last * N)
            tl.store(d_right + last * N, 1.0 / z)
        tl.debug_barrier()
        highest = tl.zeros((N,), tl.float64)
        for back in range(1, size - first):
            width = size - first - back
            span = (lane >= first) & (lane + width < size)
            mask = (t < width) & span[None, :]
            d = tl.load(d_right + width * N + lane, mask=span, other=0.0)
            highest = tl.maximum(highest, d)
            far = (t > 0) & (t <= width) & span[None, :]
            x, y = _product(open_right, right, width, 0, far, N)
            _add(d_open_right, d_right, x, y, d, width, 0, far, N)
            d = tl.load(d_left + width * N + lane, mask=span, other=0.0)
            highest = tl.maximum(highest, d)
            x, y = _product(left, open_left, width, 0, mask, N)
            _add(d_left, d_open_left, x, y, d, width, 0, mask, N)
            d = tl.load(d_open_right + width * N + lane, mask=span, other=0.0)
            e = tl.load(d_open_left + width * N + lane, mask=span, other=0.0)
            w = tl.load(weight_right + width * N + lane, mask=span, other=0.0)
            v = tl.load(weight_left + width * N + lane, mask=span, other=0.0)
            mine = tl.load(open_right + width * N + lane, mask=span, other=0.0)
            tl.store(out + lane * size + lane + width, tl.minimum(1.0, d * mine), mask=span)
            mine = tl.load(open_left + width * N + lane, mask=span, other=0.0)
            tl.store(out + (lane + width) * size + lane, tl.minimum(1.0, e * mine), mask=span)
            inner = d * w + e * v
            highest = tl.maximum(highest, tl.maximum(inner, tl.maximum(d, e)))
            x, y = _product(right, left, width - 1, 1, mask, N)
            _add(d_right, d_left, x, y, inner, width - 1, 1, mask, N)
        tl.store(found + 4 * s, z)
        tl.store(found + 4 * s + 1, shift)
        tl.store(found + 4 * s + 2, least)
        tl.store(found + 4 * s + 3, tl.max(highest, 0))
        tl.debug_barrier()


def marginal_trees(scores: Any, offsets: Any, sizes: Any, single_root: bool) -> tuple[Any, Any]:
    """log Z float64[n_sentences] and marginals laid out as `scores`, on the device; NaN and 0 where numbers do not fit.

    Parameters
    ----------
    scores : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [sizes[s], sizes[s]] of (head, child), sizes
        counting the root.
    """
    device = scores.device
    found = torch.zeros((len(sizes), 4), dtype=torch.float64, device=device)
    found[:, 0] = 1.0  # of a sentence without words
    grad = torch.zeros_like(scores)
    low, size = 1, 16
    while low < MOST_NODES:
        chosen = torch.nonzero((sizes > low) & (sizes <= size)).flatten()
        if len(chosen):
            programs = min(len(chosen), max(64, _PROGRAMS * 1024 // (size * size)))
            scratch = torch.empty(programs * _CHARTS * size * size, dtype=torch.float64, device=device)
            _trees[(programs,)](
                chosen, len(chosen), programs, scores, offsets, sizes, grad, found, scratch, N=size,
                SINGLE=single_root, num_warps={16: 1, 32: 4}.get(size, 8),
            )  # fmt: skip
        low, size = size, 2 * size
    z, shift, least, highest = found.unbind(1)
    n = (sizes - 1).double()
    safe = torch.log(z) >= n * _GROWTH + 3 * torch.log(sizes.double()) - _REACH
    fits = (z >= 1 / _HIGHEST) & (safe | ((least >= _DEEPEST) & (highest < _HIGHEST))) & (sizes <= MOST_NODES)
    values = torch.where(fits & torch.isfinite(shift), shift + torch.log(z), float("nan"))
    if not bool(fits.all()):
        grad *= torch.repeat_interleave(fits, sizes * sizes)
    return values, torch.nan_to_num_(grad, nan=0.0)
