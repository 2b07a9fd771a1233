"""All sets of links in which no word has more than one."""

from __future__ import annotations

import itertools

__all__ = ["matchings"]


def matchings(n_source: int, n_target: int) -> list[frozenset[tuple[int, int]]]:
    """All sets of links (source, target) in which no word has more than one.

    >>> len(matchings(2, 3)), len(matchings(3, 3))
    (13, 34)
    """
    found = []
    for size in range(min(n_source, n_target) + 1):
        for chosen in itertools.combinations(range(n_source), size):
            for partners in itertools.permutations(range(n_target), size):
                found.append(frozenset(zip(chosen, partners, strict=True)))
    return found
