"""LexRank: which documents, or sentences, are like many others that are like many others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError

__all__ = ["lexrank"]


def lexrank(
    similarities: Any,
    *,
    damping: float = 0.85,
    threshold: float = 0.0,
    weighted: bool = True,
    tolerance: float = 1e-10,
    iterations: int = 1000,
) -> NDArray[np.float64]:
    r"""PageRank on a graph of similarities, by power iteration.

    .. math:: p_v = \frac{1 - d}{n} + d \sum_u \frac{s_{uv}}{\sum_w s_{uw}}\, p_u

    A row without any similarity hands its share to all alike.

    Parameters
    ----------
    similarities : sparse matrix or array [n, n]
        0 or more; cosines, as a rule. What a thing has with itself counts if it is there.
    damping : float
        d: the walk goes along the graph with this probability, and anywhere otherwise. 0 or more, below 1.
    threshold : float
        Similarities below this are left out.
    weighted : bool
        Follow similarities by their size; False counts all that are left as 1, as the first paper does.
    tolerance : float
        The walk has settled when all changes together are below this.
    iterations : int
        At most.

    Returns
    -------
    float64[n]
        Adds up to 1.

    References
    ----------
    Erkan and Radev, LexRank: Graph-based Lexical Centrality as Salience in Text Summarization, JAIR 22, 2004.

    Examples
    --------
    >>> lexrank([[1, 0.5, 0.5], [0.5, 1, 0], [0.5, 0, 1]]).round(3).tolist()
    [0.388, 0.306, 0.306]
    >>> lexrank(np.zeros((0, 0))).tolist(), lexrank(np.zeros((2, 2))).tolist()
    ([], [0.5, 0.5])
    """
    from scipy.sparse import csr_matrix, diags

    graph = csr_matrix(similarities, dtype=np.float64, copy=True)
    n = graph.shape[0]
    if graph.shape != (n, n) or not (np.isfinite(graph.data).all() and (graph.data >= 0).all()):
        raise ParameterError("lexrank: a square matrix of finite similarities, 0 or more, is needed")
    if not 0 <= damping < 1 or not threshold >= 0 or not tolerance > 0 or iterations < 1:
        raise ParameterError("lexrank: 0 <= damping < 1, threshold >= 0, tolerance > 0 and iterations >= 1 are needed")
    graph.data[graph.data < threshold] = 0.0
    graph.eliminate_zeros()
    if not weighted:
        graph.data[:] = 1.0
    out = np.asarray(graph.sum(axis=1)).ravel()
    alone = out == 0
    steps = (diags(1.0 / np.where(alone, 1.0, out)) @ graph).T.tocsr()
    rank = np.full(n, 1.0 / max(n, 1))
    for _ in range(iterations):
        fresh = (1 - damping) / max(n, 1) + damping * (steps @ rank + rank[alone].sum() / max(n, 1))
        settled = np.abs(fresh - rank).sum() < tolerance
        rank = fresh
        if settled:
            break
    return rank
