"""From features of new text to links: piece by piece, so that memory does not grow with the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links
from isogloss.engine.shards import shards

__all__ = ["as_links", "competitive", "links_at", "pieces", "share_linked"]

Array = NDArray[np.float64]
LinkSet = frozenset[tuple[int, int]]
CELLS = 2**19
"""Cells whose features are in memory at a time when new text is aligned: about 100 MB."""


def pieces(bitext: Bitext, links: Mapping[str, Links] | None) -> Iterator[tuple[Bitext, Mapping[str, Links] | None]]:
    """One range of pairs after the other, with other systems' links for it."""
    ranges = shards(bitext.cells, limit=CELLS)
    if len(ranges) <= 1:  # the text itself, which the extractor may know
        yield bitext, links
        return
    for start, stop in ranges:
        own = None if links is None else {name: given.part(start, stop) for name, given in links.items()}
        yield bitext.part(start, stop), own


def as_links(rows: Sequence[tuple[LinkSet, Array | None]], bitext: Bitext | None) -> Links:
    """Rows of links, ordered by source then target, with the probabilities of those that have them."""
    lists = [sorted(links) for links, _ in rows]
    offsets = np.concatenate([[0], np.cumsum([len(links) for links in lists])]).astype(np.int64)
    flat = np.array([link for links in lists for link in links], np.int32).reshape(-1, 2)
    probability = None
    if any(p is not None for _, p in rows):
        each = [
            np.zeros(0) if not links or p is None else p[tuple(np.array(links).T)]
            for links, (_, p) in zip(lists, rows, strict=True)
        ]
        probability = np.concatenate([np.zeros(0), *each]).astype(np.float32)
    return Links(offsets, flat[:, 0].copy(), flat[:, 1].copy(), probability, None, bitext)


def links_at(cells: NDArray[np.bool_]) -> LinkSet:
    """The cells that are set, bool[n_source, n_target], as links."""
    return frozenset((i, j) for i, j in np.argwhere(cells).tolist())


def competitive(probability: Array, threshold: float) -> NDArray[np.bool_]:
    """Cells that reach a threshold and stand together with the best of their row and of their column.

    Of a word's links, those are kept that form one run with its most probable one; so no word is linked to scattered
    words. Where a link that goes breaks a run of the other side, that is looked at again, until all runs are whole.

    Parameters
    ----------
    probability : float64[n_source, n_target]
    threshold : float

    References
    ----------
    DeNero and Klein, Tailoring Word Alignments to Syntactic Machine Translation, ACL 2007, section 4; Haghighi et al.,
    ACL 2009, section 6.

    Examples
    --------
    >>> p = np.array([[0.9, 0.5, 0.0, 0.4], [0.0, 0.0, 0.8, 0.0]])
    >>> competitive(p, 0.3).astype(int).tolist()
    [[1, 1, 0, 0], [0, 0, 1, 0]]
    """
    kept = np.asarray(probability >= threshold)
    while kept.any():
        held = kept & _runs(probability, kept) & _runs(probability.T, kept.T).T
        if np.array_equal(held, kept):
            break
        kept = held
    return kept


def _runs(probability: Array, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """In each row, the cells that are kept from the best of them on, in both directions, up to one that is not."""
    run = np.cumsum(~kept, axis=1)
    best = np.where(kept, probability, -np.inf).argmax(axis=1)
    return np.asarray(run == np.take_along_axis(run, best[:, None], axis=1))


def share_linked(posterior: NDArray[np.float32]) -> float:
    """The expected share of words of a pair that have a partner; not a number for a pair that was passed over."""
    if not posterior.size:
        return float("nan")
    linked = [np.minimum(1.0, posterior.sum(axis=axis, dtype=np.float64)) for axis in (0, 1)]
    return float(np.concatenate(linked).mean())
