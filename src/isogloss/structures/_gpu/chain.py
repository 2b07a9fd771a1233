"""Chains of first order on a GPU: log Z and marginals of many sentences, one program a sentence, in float64 logs.

The same sweep as `_numba.chain`: a step loads its scores as a tile [k, k], adds the states before it along one axis and
sums the other. Sentences are sorted by the power of two that holds their labels; a program reads only what is its own,
so that the numbers do not depend on the batch.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["MOST_LABELS", "chains_log"]

MOST_LABELS = 64


@triton.jit
def _total(x, axis: tl.constexpr):
    """log Σ exp along an axis, minus infinity where nothing is allowed."""
    top = tl.max(x, axis)
    top = tl.where(top == -float("inf"), 0.0, top)
    return top + tl.log(tl.sum(tl.exp(x - tl.expand_dims(top, axis)), axis))


@triton.jit
def _chains(chosen, scores, offsets, shapes, alphas, grad, values, longest, K: tl.constexpr):
    s = tl.load(chosen + tl.program_id(0))
    n, k = tl.load(shapes + 3 * s), tl.load(shapes + 3 * s + 1)
    here = scores + tl.load(offsets + s)
    out = grad + tl.load(offsets + s)
    alphas += tl.program_id(0).to(tl.int64) * longest * K
    i = tl.arange(0, K)
    inside = (i[:, None] < k) & (i[None, :] < k)
    cell = i[:, None] * k + i[None, :]
    alpha = tl.load(here + i, mask=i < k, other=-float("inf"))
    tl.store(alphas + i, alpha)
    for t in range(1, n):
        tile = tl.load(here + t * k * k + cell, mask=inside, other=-float("inf"))
        alpha = _total(alpha[:, None] + tile, 0)
        tl.store(alphas + t * K + i, alpha)
    value = _total(alpha, 0)
    tl.store(values + s, value)
    tl.debug_barrier()
    value = tl.where(value == -float("inf"), 0.0, value)
    beta = tl.where(i < k, 0.0, -float("inf")).to(tl.float64)
    for back in range(1, n):
        t = n - back
        tile = tl.load(here + t * k * k + cell, mask=inside, other=-float("inf")) + beta[None, :]
        before = tl.load(alphas + (t - 1) * K + i)
        tl.store(out + t * k * k + cell, tl.exp(before[:, None] + tile - value), mask=inside)
        beta = _total(tile, 1)
    first = tl.exp(tl.load(alphas + i) + beta - value)
    tl.store(out + i, first, mask=i < k)


def chains_log(scores: Any, offsets: Any, shapes: Any) -> tuple[Any, Any]:
    """log Z float64[n_sentences] and marginals laid out as `scores`, all on the device.

    Parameters
    ----------
    scores : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [n, k, k]; the first row of its first step is
        the start.
    shapes : int64[n_sentences, 3]
        n, k, k; at most `MOST_LABELS` labels.
    """
    values = torch.zeros(len(shapes), dtype=torch.float64, device=scores.device)
    grad = torch.zeros_like(scores)
    shapes = shapes.contiguous()
    low, size = 0, 16
    while low < MOST_LABELS:
        chosen = torch.nonzero((shapes[:, 1] > low) & (shapes[:, 1] <= size) & (shapes[:, 0] > 0)).flatten()
        if len(chosen):
            longest = int(shapes[chosen, 0].max())
            alphas = torch.empty(len(chosen) * longest * size, dtype=torch.float64, device=scores.device)
            _chains[(len(chosen),)](
                chosen,
                scores,
                offsets,
                shapes,
                alphas,
                grad,
                values,
                longest,
                K=size,
                num_warps=max(1, size // 16) ** 2,
            )
        low, size = size, 2 * size
    return values, grad
