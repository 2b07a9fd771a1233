r"""Spanning trees on a GPU: log Z and marginals by the matrix-tree theorem, many sentences at a time.

With weights :math:`w_{hm}` (each child's largest at 1) and :math:`L_{mm} = \sum_h w_{hm}`, :math:`L_{hm} = -w_{hm}`
over the words, :math:`Z = \det L` and :math:`p(h, m) = w_{hm} (L^{-1}_{mm} - L^{-1}_{mh})`; with one root child the
first row of L is that of the root [1]_. The kernels for the processor never subtract; these do, in float64: what
`spanning_trees` gives is refused (NaN, and the caller turns to the processor) unless the marginals of every word add up
to one and none is below zero by more than `LOST`.

References
----------
.. [1] Koo, Globerson, Carreras and Collins, Structured Prediction Models via the Matrix-Tree Theorem, EMNLP 2007,
   section 3.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["LOST", "spanning_trees"]

LOST = 1e-9
_PIECE = 1 << 26  # numbers of a matrix that are worked on at a time


def spanning_trees(scores: Any, offsets: Any, sizes: Any, single: bool) -> tuple[Any, Any]:
    """log Z float64[n_sentences] and marginals laid out as `scores`, on the device; NaN and 0 where too much is lost.

    Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [sizes[s], sizes[s]] of (head, child).
    """
    values = torch.zeros(len(sizes), dtype=torch.float64, device=scores.device)
    marginals = torch.zeros_like(scores)
    for size in torch.unique(sizes[sizes > 1]).tolist():
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
