r"""Spanning trees on a GPU: log Z and marginals by the matrix-tree theorem, many sentences at a time.

With weights :math:`w_{hm}` (each child's largest at 1) and :math:`L_{mm} = \sum_h w_{hm}`, :math:`L_{hm} = -w_{hm}`
over the words, :math:`Z = \det L` and :math:`p(h, m) = w_{hm} (L^{-1}_{mm} - L^{-1}_{mh})`; with one root child the
first row of L is that of the root [1]_. The kernels for the processor never subtract; these do, in float64: what
`spanning_trees` gives is refused (NaN, and the caller turns to the processor) unless the marginals of every word add up
to one and none is below zero by more than `LOST`.

A sentence of up to `MOST_NODES` nodes is one program, which inverts L by Gauss-Jordan steps with the largest pivot of
each column; longer ones are factorised by torch, those of one length together.

References
----------
.. [1] Koo, Globerson, Carreras and Collins, Structured Prediction Models via the Matrix-Tree Theorem, EMNLP 2007,
   section 3.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["LOST", "MOST_NODES", "spanning_trees"]

LOST = 1e-9
MOST_NODES = 65
_PIECE = 1 << 26  # numbers of a matrix that are worked on at a time


@triton.jit
def _at(x, wanted, axis: tl.constexpr):
    """The row (axis 0) or column (axis 1) of a tile where `wanted` is true."""
    return tl.sum(tl.where(tl.expand_dims(wanted, 1 - axis), x, 0.0), axis)


@triton.jit
def _trees(chosen, scores, offsets, sizes, values, marginals, scratch, LOST, N: tl.constexpr, SINGLE: tl.constexpr):
    """One sentence: log Z and marginals, or NaN and nothing."""
    s = tl.load(chosen + tl.program_id(0))
    size = tl.load(sizes + s).to(tl.int32)
    n = size - 1
    here = scores + tl.load(offsets + s)
    out = marginals + tl.load(offsets + s)
    inverse = scratch + tl.program_id(0).to(tl.int64) * N * N
    lane = tl.arange(0, N)
    h, m = lane[:, None], lane[None, :]
    real = lane < n
    link = (h < n) & (m < n) & (h != m)
    between = tl.load(here + (h + 1) * size + m + 1, mask=link, other=-float("inf"))
    root = tl.load(here + lane + 1, mask=real, other=-float("inf"))
    top = tl.maximum(tl.max(between, 0), root)
    high = tl.where(top == -float("inf"), 0.0, top)
    between = tl.exp(between - high[None, :])
    root = tl.exp(root - high)
    degree = tl.sum(between, 0)
    if not SINGLE:
        degree += root
    degree = tl.where(real, degree, 1.0)
    a = tl.where(h == m, degree[None, :], -between)
    if SINGLE:
        a = tl.where((h == 0) & (m < n), root[None, :], a)
    x = tl.where(h == m, 1.0, 0.0).to(tl.float64)
    free = real
    place = lane  # which row of the inverse each row becomes
    log_z = tl.sum(tl.where(real, high, 0.0), 0)
    for k in range(n):
        column = _at(a, lane == k, 1)
        size_of = tl.where(free, tl.abs(column), -1.0)
        pivot = tl.argmax(size_of, 0)
        mine = lane == pivot
        factor = tl.sum(tl.where(mine, column, 0.0), 0)
        log_z += tl.log(tl.abs(factor))
        row_a, row_x = _at(a, mine, 0) / factor, _at(x, mine, 0) / factor
        rest = tl.where(mine, 0.0, column)
        a = tl.where(mine[:, None], row_a[None, :], a - rest[:, None] * row_a[None, :])
        x = tl.where(mine[:, None], row_x[None, :], x - rest[:, None] * row_x[None, :])
        place = tl.where(mine, k, place)
        free = free & (lane != pivot)
    tl.store(inverse + place[:, None] * N + m, x)
    tl.debug_barrier()
    own = tl.load(inverse + lane * N + lane)
    taken = tl.load(inverse + m * N + h)
    if SINGLE:  # the first row holds the root, so that no link leads there
        below = between * (tl.where(m == 0, 0.0, own[None, :]) - tl.where(h == 0, 0.0, taken))
        above = root * tl.load(inverse + lane * N)
    else:
        below = between * (own[None, :] - taken)
        above = root * own
    below = tl.where(link, below, 0.0)
    above = tl.where(real, above, 0.0)
    strayed = tl.max(tl.where(real, tl.abs(tl.sum(below, 0) + above - 1.0), 0.0), 0)
    lowest = tl.minimum(tl.min(tl.min(below, 1), 0), tl.min(above, 0))
    whole = tl.sum(tl.sum(below, 0) + above, 0)  # NaN if anything is, which largest and least numbers pass over
    right = (tl.abs(whole - n) < LOST * N) & (log_z > -float("inf")) & (log_z < float("inf"))
    right &= (strayed < LOST) & (lowest > -LOST) & (tl.min(tl.where(real, top, 0.0), 0) > -float("inf"))
    below = tl.where(right, tl.minimum(1.0, tl.maximum(0.0, below)), 0.0)
    above = tl.where(right, tl.minimum(1.0, tl.maximum(0.0, above)), 0.0)
    tl.store(out + (h + 1) * size + m + 1, below, mask=link)
    tl.store(out + lane + 1, above, mask=real)
    tl.store(values + s, tl.where(right, log_z, float("nan")))


def spanning_trees(scores: Any, offsets: Any, sizes: Any, single: bool) -> tuple[Any, Any]:
    """log Z float64[n_sentences] and marginals laid out as `scores`, on the device; NaN and 0 where too much is lost.

    Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [sizes[s], sizes[s]] of (head, child).
    """
    values = torch.zeros(len(sizes), dtype=torch.float64, device=scores.device)
    marginals = torch.zeros_like(scores)
    low, size = 1, 16
    while low < MOST_NODES:
        chosen = torch.nonzero((sizes > low) & (sizes <= size + 1)).flatten()
        if len(chosen):
            scratch = torch.empty(len(chosen) * size * size, dtype=torch.float64, device=scores.device)
            _trees[(len(chosen),)](
                chosen, scores, offsets, sizes, values, marginals, scratch, LOST, N=size, SINGLE=single,
                num_warps=max(1, (size // 16) ** 2),
            )  # fmt: skip
        low, size = size + 1, 2 * size
    for size in torch.unique(sizes[sizes > MOST_NODES]).tolist():
        everyone = torch.nonzero(sizes == size).flatten()
        for chosen in torch.split(everyone, max(1, _PIECE // (size * size))):
            at = offsets[chosen, None] + torch.arange(size * size, device=scores.device)
            z, p = _same_size(scores[at].reshape(-1, size, size), single)
            values[chosen] = z
            marginals[at] = p.reshape(len(chosen), -1)
    return values, marginals


def _same_size(scores: Any, single: bool) -> tuple[Any, Any]:
    """Sentences of one length: scores [b, n + 1, n + 1]."""
    scores = scores.clone()
    scores[:, :, 0] = -torch.inf
    torch.diagonal(scores, dim1=1, dim2=2).fill_(-torch.inf)
    top = scores.amax(dim=1)[:, 1:]
    possible = torch.isfinite(top).all(dim=1)
    weight = torch.exp(scores[:, :, 1:] - torch.where(torch.isfinite(top), top, 0.0)[:, None])  # by head, child
    root, between = weight[:, 0], weight[:, 1:]
    laplacian = -between
    diagonal = torch.diagonal(laplacian, dim1=1, dim2=2)
    diagonal += between.sum(dim=1) if single else weight.sum(dim=1)
    if single:
        laplacian[:, 0] = root
    factors, pivots, info = torch.linalg.lu_factor_ex(laplacian)
    steps = torch.diagonal(factors, dim1=1, dim2=2)
    log_z = torch.log(steps.abs()).sum(dim=1) + top.sum(dim=1)
    eye = torch.eye(scores.shape[1] - 1, dtype=torch.float64, device=scores.device).expand_as(laplacian)
    inverse = torch.linalg.lu_solve(factors, pivots, eye.contiguous())  # [child, head]
    own = torch.diagonal(inverse, dim1=1, dim2=2)
    taken = inverse.transpose(1, 2)
    if single:
        keep = torch.ones_like(own)
        keep[:, 0] = 0.0  # the first row holds the root, so that no link leads there
        below = between * (own[:, None] * keep[:, None] - taken * keep[:, :, None])
        above = root * inverse[:, :, 0]
    else:
        below, above = between * (own[:, None] - taken), root * own
    p = torch.zeros_like(scores)
    p[:, 0, 1:], p[:, 1:, 1:] = above, below
    right = (p[:, :, 1:].sum(dim=1) - 1.0).abs().amax(dim=1) < LOST
    right &= (p.amin(dim=(1, 2)) > -LOST) & possible & (info == 0)
    p = torch.where(right[:, None, None], p.clamp(0.0, 1.0), 0.0)
    return torch.where(right, log_z, torch.nan), p
