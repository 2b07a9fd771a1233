"""Symmetrisation: one set of links from the links of two directions, with the behaviour of Moses' `symal`.

A directional model links every target word to at most one source word (forward) or every source word to at most one
target word (backward). The heuristics of Och and Ney (2003) and Koehn, Och and Marcu (2003) combine the two: they
start from the links both directions agree on and add others out of the union.

What a grow heuristic adds depends on the order in which it looks, since a link that is added covers two words and may
shut out the next. Our order is that of `symal`, the program behind Moses:

1. *Grow.* Scan the links chosen so far by target word, then source word. For each, look at its neighbours in the order
   (target - 1), (source - 1), (target + 1), (source + 1), then, in the `diag` methods, (-1, -1), (-1, +1), (+1, -1),
   (+1, +1) as (target, source). A neighbour in the union which covers a word not covered yet is chosen at once; when
   it lies after the link being scanned, it is itself scanned in the same round. Rounds go on until one adds nothing.
2. *Final.* Go through the links of the forward direction alone (target words generated from source words), by target,
   then source, and choose those which cover a word not covered yet; with `final-and`, only those whose two words are
   both uncovered. Then the same for the links of the backward direction alone.

fast_align's `atools` gives the same names to a close but different procedure: it scans the *candidates*, by source
word, then target word, and chooses one that covers a new word if any neighbour is already chosen; its final steps also
go by source, then target. The answers can differ; only the behaviour of Moses is offered here.

`symal` is given functions from words to words. We also take many-to-many links (a thresholded posterior, say), for
which the steps above are read as they stand.

References
----------
F. J. Och and H. Ney, A Systematic Comparison of Various Statistical Alignment Models, Computational Linguistics 2003.
P. Koehn, F. J. Och and D. Marcu, Statistical Phrase-Based Translation, NAACL 2003.
P. Koehn et al., Moses: Open Source Toolkit for Statistical Machine Translation, ACL 2007; its program `symal`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Links
from isogloss.errors import LinksError, ParameterError
from isogloss.tasks.align.options import METHODS

__all__ = ["METHODS", "symmetrise", "symmetrise_links"]

Link = tuple[int, int]


class _Plan(NamedTuple):
    """What a method's name means: how many neighbours are looked at, which final step, and where it starts."""

    neighbours: int = 0
    final: int = 0  # 0: none; 1: the link covers at least one new word; 2: it covers two
    start_from_union: bool = False


_PLANS = {
    "intersection": _Plan(),
    "union": _Plan(start_from_union=True),
    "grow": _Plan(4),
    "grow-final": _Plan(4, 1),
    "grow-final-and": _Plan(4, 2),
    "grow-diag": _Plan(8),
    "grow-diag-final": _Plan(8, 1),
    "grow-diag-final-and": _Plan(8, 2),
}


def symmetrise(
    forward: Iterable[Link],
    backward: Iterable[Link],
    shape: tuple[int, int] | None = None,
    method: str = "grow-diag-final-and",
) -> frozenset[Link]:
    """Combine the links of the two directions of one sentence pair.

    Parameters
    ----------
    forward, backward : sets of (source, target)
        Links of each direction, both written source first, from 0. `forward` is the direction in which target words are
        generated from source words; in the `final` methods it is tried before `backward`.
    shape : (n_source, n_target), optional
        The lengths of the sentences; links outside them are an error.
    method : str
        One of `METHODS`.

    Returns
    -------
    frozenset of (source, target)
        At least the intersection and at most the union.

    Examples
    --------
    >>> forward, backward = {(0, 0), (1, 1), (1, 2), (3, 4)}, {(0, 0), (1, 1), (2, 3)}
    >>> sorted(symmetrise(forward, backward, (4, 5), "intersection"))
    [(0, 0), (1, 1)]
    >>> sorted(symmetrise(forward, backward, (4, 5), "grow-diag"))
    [(0, 0), (1, 1), (1, 2), (2, 3), (3, 4)]
    """
    _plan(method)
    forward, backward = frozenset(forward), frozenset(backward)
    shapes = None if shape is None else np.array([shape], np.int64)
    if shape is None and method == "union":
        return forward | backward
    if shape is None and method == "intersection":
        return forward & backward
    row = symmetrise_links(Links.of([forward]), Links.of([backward]), shapes, method)
    return frozenset(zip(row.source.tolist(), row.target.tolist(), strict=True))


def symmetrise_links(
    forward: Links,
    backward: Links,
    shapes: NDArray[Any] | None = None,
    method: str = "grow-diag-final-and",
) -> Links:
    """Combine the links of the two directions of a whole text, pair by pair.

    Parameters
    ----------
    forward, backward : Links
        As in `symmetrise`. Links marked as possible are left out.
    shapes : int[n_pairs, 2], optional
        Source and target length of each pair; links outside them are an error.
    method : str
        One of `METHODS`.

    Returns
    -------
    Links
        Without probabilities: a heuristic has none of its own, a model can add those of its posterior.

    Examples
    --------
    >>> both = symmetrise_links(Links.of([{(0, 0), (1, 1)}, set()]), Links.of([{(0, 0)}, {(2, 1)}]), method="grow-diag")
    >>> [str(pair) for pair in both]
    ['0-0 1-1', '']
    """
    plan = _plan(method)
    if len(forward) != len(backward):
        raise LinksError(
            f"symmetrise: {len(forward)} pairs of forward links but {len(backward)} of backward links. "
            "Both directions must be of the same text, a line for every pair"
        )
    if shapes is not None:
        _check_shapes(forward, np.asarray(shapes), "forward")
        _check_shapes(backward, np.asarray(shapes), "backward")
    from isogloss.tasks.align._symmetrise_kernel import symmetrised  # numba takes a while to import

    offsets, source, target = symmetrised(*_arrays(forward), *_arrays(backward), *plan)
    return Links(offsets, source, target, bitext=forward.bitext if forward.bitext is not None else backward.bitext)


def _plan(method: str) -> _Plan:
    if method not in _PLANS:
        raise ParameterError(f"symmetrise: no method {method!r}; choose one of {', '.join(METHODS)}")
    return _PLANS[method]


def _check_shapes(links: Links, shapes: NDArray[Any], direction: str) -> None:
    if shapes.shape != (len(links), 2):
        raise LinksError(
            f"symmetrise: lengths have shape {shapes.shape} for {len(links)} pairs of links; "
            "give a source and a target length for every pair"
        )
    pair = links.pair
    outside = (links.source >= shapes[pair, 0]) | (links.target >= shapes[pair, 1])
    outside |= (links.source < 0) | (links.target < 0)
    if outside.any():
        at = int(outside.argmax())
        n_source, n_target = shapes[pair[at]].tolist()
        raise LinksError(
            f"symmetrise: {direction} link {links.source[at]}-{links.target[at]} of pair {pair[at]} is outside its "
            f"{n_source} source and {n_target} target words. Indices count from 0, source first: is the file of this "
            "direction written target first?"
        )


def _arrays(links: Links) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The sure links as the kernel takes them: every row ordered by source, then target."""
    if links.possible is not None:
        links = links.keep(~links.possible)
    source, target = links.source, links.target
    if min(source.min(initial=0), target.min(initial=0)) < 0:
        raise LinksError("symmetrise: links have negative indices; they count from 0, and null is never a link")
    falls = (source[1:] < source[:-1]) | ((source[1:] == source[:-1]) & (target[1:] < target[:-1]))
    inner = links.offsets[1:-1]
    falls[inner[(inner > 0) & (inner < len(source))] - 1] = False  # the first link of a row may be anything
    if falls.any():
        order = np.lexsort((target, source, links.pair))
        source, target = source[order], target[order]
    return links.offsets, source, target
