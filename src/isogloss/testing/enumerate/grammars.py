"""All trees that a small grammar in normal form, with unary rules, has for a short sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isogloss.testing.enumerate.base import BruteForce
from isogloss.testing.enumerate.brackets import all_spans

__all__ = ["brute_force_cfg", "derivations"]

Node = tuple[int, int, int, int]
Rules = Sequence[Sequence[int]]


def derivations(n: int, n_symbols: int, binary: Rules, unary: Rules = ()) -> list[list[Node]]:
    """Every tree over n words, whatever the words are: nodes (i, j, seen from above, made), the highest first.

    >>> [len(derivations(n, 1, [(0, 0, 0)])) for n in range(6)]
    [1, 1, 1, 2, 5, 14]
    >>> len(derivations(1, 2, [], [(0, 1)]))
    3
    """

    def over(i: int, j: int) -> list[list[Node]]:
        found: list[list[Node]] = []
        for made in range(n_symbols):
            inside: list[list[Node]] = [[]] if j - i == 1 else []
            for k in range(i + 1, j):
                for left in over(i, k):
                    for right in over(k, j):
                        rule = (made, left[0][2], right[0][2])
                        inside += [left + right] * any(tuple(own) == rule for own in binary)
            seen = [made, *(above for above, below in unary if below == made)]
            found += [[(i, j, top, made), *below] for top in seen for below in inside]
        return found

    return over(0, n) if n else [[]]


def _parts(tree: list[Node], n: int, n_symbols: int, binary: Rules, unary: Rules) -> np.ndarray:
    spans = all_spans(n)
    rules, lone = np.zeros(len(binary)), np.zeros(len(unary))
    inner, outer = np.zeros((len(spans), n_symbols)), np.zeros((len(spans), n_symbols))
    for i, j, top, made in tree:
        inner[spans.index((i, j)), made] += 1
        outer[spans.index((i, j)), top] += 1
        for number, rule in enumerate(unary):
            lone[number] += top != made and tuple(rule) == (top, made)
        below = [node for node in tree if i <= node[0] and node[1] <= j and (node[0], node[1]) != (i, j)]
        if below:
            left = max((node for node in below if node[0] == i), key=lambda node: node[1])
            right = max((node for node in below if node[1] == j), key=lambda node: node[1] - node[0])
            for number, rule in enumerate(binary):
                rules[number] += tuple(rule) == (made, left[2], right[2])
    kinds = [rules, lone, inner.ravel(), outer.ravel()]
    return np.concatenate(kinds if len(unary) else kinds[:3])


def brute_force_cfg(scores: ArrayLike, n: int, n_symbols: int, binary: Rules, unary: Rules = ()) -> BruteForce:
    """Every tree of n words under float64[n_parts] scores: binary rules, unary rules, symbols made over spans and, if
    there are unary rules, symbols seen over spans."""
    values = np.asarray(scores, np.float64)
    listed = derivations(n, n_symbols, binary, unary)
    parts = np.array([_parts(tree, n, n_symbols, binary, unary) for tree in listed]).reshape(len(listed), len(values))
    totals = np.array([(part[part > 0] * values[part > 0]).sum() for part in parts])
    return BruteForce([frozenset(tree) for tree in listed], parts, totals)
