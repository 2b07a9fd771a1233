"""The k best alignments of an `Itg`, by splitting what is left around each one found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isogloss.structures import kbest
from isogloss.structures.itg_parts import Links
from isogloss.structures.semiring import MAX

if TYPE_CHECKING:
    from isogloss.structures.itg import Itg

__all__ = ["k_best"]


def k_best(dist: Itg, k: int) -> list[tuple[float, Links]]:
    """The `k` best alignments with their scores; an alignment is seen as one term for each source word."""
    kbest.checked_k(k, repr(dist))
    pruning, levels, none = dist._pruning, dist._levels, np.empty(0)
    if pruning is not None and dist._run(MAX, none, pruning)[0] == -np.inf:
        pruning = None
    terms, covers = dist._terms if pruning is None else dist._allowed, _covers(dist)
    top = dist.level()

    def best(fixed: Sequence[int], banned: frozenset[int]) -> tuple[float, Sequence[int]] | None:
        left = terms.copy()
        for word, term in enumerate(fixed):
            left[covers[word]] = -np.inf
            left[term] = terms[term]
        left[list(banned)] = -np.inf
        there = dist._copied(*dist._split(left), pruning=pruning)
        value, out, _ = there._run(MAX, none, pruning)
        if value == -np.inf or (levels is not None and int(levels[out > 0].sum()) != top):
            return None
        return float(terms[out > 0].sum()), [int(np.flatnonzero(out * cover)[0]) for cover in covers]

    found = kbest.k_best(best, k)
    if not found:
        dist._raise_infeasible()
    return [(score, _links(dist, choices)) for score, choices in found]


def _covers(dist: Itg) -> NDArray[np.bool_]:
    """bool[n_source, n_terms]: which terms have a source word in them."""
    out = np.zeros((dist.n_source, len(dist._terms)), np.bool_)
    for word, row in enumerate(out):
        links, source_null, _, *blocks = dist._split(row)
        links[word], source_null[word] = True, True
        if blocks:
            blocks[1][word] = True
            for m in range(blocks[0].shape[2]):
                blocks[0][max(0, word - m - 1) : word + 1, :, m] = True
    return out


def _links(dist: Itg, choices: Sequence[int]) -> Links:
    vector = np.zeros(len(dist._terms))
    vector[list(choices)] = 1.0
    return dist._links(vector)
