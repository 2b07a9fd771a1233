"""From features of new text to links: piece by piece, so that memory does not grow with the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links
from isogloss.engine.shards import shards

__all__ = ["as_links", "pieces", "share_linked"]

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


def share_linked(posterior: NDArray[np.float32]) -> float:
    """The expected share of words of a pair that have a partner; not a number for a pair that was passed over."""
    if not posterior.size:
        return float("nan")
    linked = [np.minimum(1.0, posterior.sum(axis=axis, dtype=np.float64)) for axis in (0, 1)]
    return float(np.concatenate(linked).mean())
